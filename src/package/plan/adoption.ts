import { matchesGlob } from 'node:path';
import { timestamp } from '../../foundation/time/clock.ts';
import type { Oid, RefUpdate } from '../../git/git-repository.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { evaluateTombstone } from '../index/trust/deletion-proof.ts';
import { PUSH_ACTOR } from '../model/gates/verdict.ts';
import { adoptionRef, deletedIn, tombstonePrefix, tombstoneRef, unsignedRecordUid } from '../model/identity/layout.ts';
import { readRecordAt } from '../model/record/read-record.ts';
import { hasObjectMetadata, type RevisionRecord } from '../model/record/record.ts';
import { isPlaceholder, isPublished, type PackageRevision } from '../model/revision/package-revision.ts';
import {
  ADOPTION_FILE,
  ADOPTION_SCOPE,
  type AdoptionList,
  type AdoptionStatement,
  formatAdoptionList,
  listDigest,
} from '../trust/adoption.ts';
import { parsePublicationDigest, publicationDigest, publicationScope } from '../trust/ledger/publication-mark.ts';
import type { NewMark } from '../trust/ledger/trust-ledger.ts';
import { formatStatement, STATEMENT_VERSION } from '../trust/statement/statement.ts';
import { markOf, type RepositoryContext, signatures, writeRecord } from './ports/repository-context.ts';

/** A tag, or the tombstone of a deleted one, that would count after adoption. */
export interface AdoptableTag {
  readonly ref: string;
  readonly oid: Oid;
  /** Undefined for a deletion. */
  readonly revision: string | undefined;
  /** Reason why it does not count now. */
  readonly reason: string;
  readonly message: string;
  /** Set where the number belongs to another publication that counted: a push moved the tag away from it. */
  readonly movedFrom?: Oid;
}

/** An unsigned record of an earlier version, and what would be taken over of it. */
export interface AdoptableRecord {
  readonly ref: string;
  readonly oid: Oid;
  /** Undefined if it belongs to no revision of this registration; then it is not adopted. */
  readonly revision: string | undefined;
  readonly metadata: Pick<RevisionRecord, 'labels' | 'annotations' | 'ownerReferences' | 'finalizers'>;
}

export interface Adoptable {
  readonly tags: readonly AdoptableTag[];
  readonly records: readonly AdoptableRecord[];
  /** Set if the main branch was rewritten since it was accepted last. */
  readonly main: { readonly accepted: Oid; readonly present: Oid } | undefined;
}

export interface AdoptionPlan {
  readonly updates: readonly RefUpdate[];
  readonly marks: readonly NewMark[];
}

/**
 * Returns refs without a trusted statement, which an operator can adopt. `only` is a glob: for tags without `refs/tags/`, and for
 * records as `<path>/<workspace>`. Signatures have to be checked before.
 */
export async function findAdoptable(repo: RepositoryContext, only?: string): Promise<Adoptable> {
  const isWanted = (name: string) => only === undefined || matchesGlob(name, only);
  const tags: AdoptableTag[] = [];
  const records: AdoptableRecord[] = [];
  const byUid = new Map<string, PackageRevision>();
  for (const row of repo.index.all()) {
    byUid.set(row.uid, row);
    const { ref, refOid: oid, name: revision, outOfBand } = row;
    if (outOfBand === undefined || !isPublished(row) || isPlaceholder(row)) continue;
    if (isWanted(ref.slice('refs/tags/'.length)))
      tags.push({ ref, oid, revision, ...outOfBand, ...movedFrom(repo, row) });
  }
  for (const { name: ref, oid } of await repo.git.listRefs([repo.layout.recordPrefix])) {
    const uid = unsignedRecordUid(repo.layout, ref);
    if (uid === undefined) continue;
    const row = byUid.get(uid);
    if (row !== undefined && !isWanted(`${row.path}/${row.key.workspace}`)) continue;
    const record = (await readRecordAt(repo.git, oid))?.record;
    if (record === undefined) continue;
    records.push({ ref, oid, revision: row?.name, metadata: metadataOf(record) });
  }
  for (const { name: ref, oid } of await repo.git.listRefs([tombstonePrefix(repo.layout)])) {
    const place = deletedIn(repo.layout, ref);
    if (place === undefined || !isWanted(`${place.path}/${place.version}`)) continue;
    if (repo.index.isAdopted(ref, oid)) continue;
    const { flaw } = await evaluateTombstone(repo, { ...place, oid, isAdopted: false });
    if (flaw !== undefined) tags.push({ ref, oid, revision: undefined, ...flaw });
  }
  tags.sort((a, b) => (a.ref < b.ref ? -1 : 1));
  const { leftBehind: accepted, mainHead: present } = repo.index;
  return { tags, records, main: accepted === undefined || present === undefined ? undefined : { accepted, present } };
}

/**
 * Signs one statement about all of it, and moves records to the refs of signed ones. No verdict of an unsigned record opens a
 * gate.
 */
export async function planAdoption(
  repo: RepositoryContext,
  { tags, records, main }: Adoptable,
  context: RequestContext,
): Promise<AdoptionPlan> {
  const updates: RefUpdate[] = [];
  const marks: NewMark[] = [];
  for (const { ref, oid, revision } of records) {
    const row = revision === undefined ? undefined : repo.index.get(revision);
    const old = (await readRecordAt(repo.git, oid))?.record;
    if (row === undefined || old === undefined) continue;
    // A signed record was added since, or a publication whose record contains nothing to keep.
    const isKept = row.record === undefined && (!isPublished(row) || hasObjectMetadata(old));
    if (isKept) {
      const record = migratedRecord(row, old, context, timestamp(repo.clock.now()));
      const note = { subject: `adopt ${row.name} by ${context.actor.name}`, action: 'adopt', onTopOf: oid };
      const written = await writeRecord(repo, row, record, note, context);
      updates.push(written.update);
      marks.push(written.mark);
    }
    updates.push({ type: 'delete', ref, old: oid });
  }
  updates.push(...droppedTombstones(repo, tags));
  // Also for records alone: the statement permits their removal.
  if (tags.length > 0 || main !== undefined || updates.length > 0) {
    const { update, mark } = await writeAdoption(repo, tags, context);
    updates.push(update);
    marks.push(mark, ...tags.flatMap((tag) => publicationMark(repo, tag) ?? []));
  }
  return { updates, marks };
}

/** The publication that the ledger knows under the number of a tag, if the tag points elsewhere now. */
function movedFrom(
  { trust }: RepositoryContext,
  { path, revision, tip }: PackageRevision,
): { readonly movedFrom?: Oid } {
  const mark = trust.mark(publicationScope(path, `v${revision}`));
  if (mark === undefined) return {};
  const { commit, isDeleted } = parsePublicationDigest(mark.digest);
  return isDeleted || commit === tip.oid ? {} : { movedFrom: commit };
}

/** An operator can also adopt a publication that was deleted, or one that another publication replaced. */
function publicationMark({ index, trust }: RepositoryContext, { revision }: AdoptableTag): NewMark | undefined {
  const row = revision === undefined ? undefined : index.get(revision);
  if (row === undefined) return undefined;
  const version = `v${row.revision}`;
  const statementTag = row.refOid === row.tip.oid ? undefined : row.tip.statementTag;
  const digest = publicationDigest({ commit: row.tip.oid, statementTag });
  const mark = trust.mark(publicationScope(row.path, version));
  return mark === undefined || mark.digest === digest ? undefined : trust.markOfPublication(row.path, version, digest);
}

/** A publication that was deleted and is adopted again is deleted no more. */
function droppedTombstones({ index, layout }: RepositoryContext, tags: readonly AdoptableTag[]): RefUpdate[] {
  return tags.flatMap(({ revision }) => {
    const row = revision === undefined ? undefined : index.get(revision);
    if (row === undefined) return [];
    const ref = tombstoneRef(layout, row.key.package, row.ref.slice(row.ref.lastIndexOf('/') + 1));
    const old = index.ref(ref);
    return old === undefined ? [] : [{ type: 'delete', ref, old }];
  });
}

async function writeAdoption(
  repo: RepositoryContext,
  tags: readonly AdoptableTag[],
  context: RequestContext,
): Promise<{ update: RefUpdate; mark: NewMark }> {
  const { git, index, trust, layout } = repo;
  const known: AdoptionList = index.adoptionDistrust === undefined ? (index.adoption?.list ?? new Map()) : new Map();
  const list = formatAdoptionList(new Map([...known, ...tags.map(({ ref, oid }) => [ref, oid] as const)]));
  const current = index.adoptionDistrust === undefined ? index.adoption?.fact : undefined;
  const statement: AdoptionStatement = {
    ...{ statement: STATEMENT_VERSION, kind: 'adoption', repository: trust.repository, ...ADOPTION_SCOPE },
    ...trust.next(ADOPTION_SCOPE, current),
    ...{ list: listDigest(list), main: index.mainHead ?? null },
  };
  const { signed, fact } = await trust.sign(statement);
  const ref = adoptionRef(layout);
  const before = index.ref(ref);
  const [stat] = before === undefined ? [] : await git.statObjects([before]);
  const oid = await git.writeCommit({
    tree: await git.editTree(undefined, new Map([[ADOPTION_FILE, { data: Buffer.from(list) }]])),
    parents: before === undefined || stat?.type !== 'commit' ? [] : [before],
    ...signatures(repo, context),
    message: formatStatement(`${tags.length} adopted by ${context.actor.name.replace(/\s+/g, ' ')}`, signed),
  });
  const update: RefUpdate =
    before === undefined ? { type: 'create', ref, new: oid } : { type: 'update', ref, old: before, new: oid };
  return { update, mark: markOf(fact) };
}

/** Returns the metadata to keep: of the object, its source and times. Earlier actors are claims. */
function migratedRecord(
  { commit, lifecycle }: PackageRevision,
  old: RevisionRecord,
  { actor, face, reason }: RequestContext,
  at: string,
): RevisionRecord {
  const { source, task, createdAt, deletionTimestamp } = old;
  const since = createdAt ?? at;
  const isDraft = lifecycle === 'Draft' || lifecycle === 'Proposed';
  return {
    ...{ version: 1, commit, verdicts: [] },
    steps: [{ action: 'adopt', by: actor.name, face, at, commit, ...(reason === undefined ? {} : { reason }) }],
    // The contributors of the draft are unknown, as after a push.
    ...(isDraft ? { contributors: [{ name: PUSH_ACTOR, face: 'git', since, commit }] } : {}),
    ...(source === undefined ? {} : { source }),
    ...(task === undefined ? {} : { task }),
    ...(createdAt === undefined ? {} : { createdAt }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...metadataOf(old),
  };
}

function metadataOf({ labels, annotations, ownerReferences, finalizers }: RevisionRecord): AdoptableRecord['metadata'] {
  return {
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(ownerReferences === undefined ? {} : { ownerReferences }),
    ...(finalizers === undefined ? {} : { finalizers }),
  };
}
