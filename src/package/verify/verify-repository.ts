import { type GitRepository, type Oid, type Ref, ZERO_OID } from '../../git/git-repository.ts';
import { FactCache } from '../index/facts/fact-cache.ts';
import { RevisionIndex } from '../index/revision-index.ts';
import { evaluateTombstone } from '../index/trust/deletion-proof.ts';
import {
  adoptionRef,
  deletedIn,
  identityRef,
  mainRef,
  otherIdentityRef,
  type RepositoryLayout,
  unsignedRecordUid,
} from '../model/identity/layout.ts';
import { isPlaceholder, isPublished, type PackageRevision } from '../model/revision/package-revision.ts';
import type { TrustLedger } from '../trust/ledger/trust-ledger.ts';
import { idOfPublications } from './id-of-publications.ts';
import { findLaterPublications } from './later-publications.ts';
import { findId, readOnlyTrust } from './read-only-trust.ts';

export interface VerifyOptions {
  readonly git: GitRepository;
  readonly layout: RepositoryLayout;
  /** Under the names that they have in the repository itself. */
  readonly refs: readonly Ref[];
  readonly ledger: TrustLedger;
  /** Refs may be missing. Default: false. */
  readonly isClone?: boolean;
  /** Returns why a repository with an id is another one than expected. */
  readonly checkId?: (id: string) => string | undefined;
}

/** The result of a verification, one entry for each statement or missing statement. */
export interface Verified {
  readonly ref: string;
  readonly oid: Oid;
  readonly kind: 'repository' | 'adoption' | 'publication' | 'placeholder' | 'record' | 'deletion';
  /** Reason why it does not count; undefined if it does. */
  readonly finding: { readonly reason: string; readonly message: string } | undefined;
}

export interface Verification {
  /** Undefined if none is written. */
  readonly id: string | undefined;
  /** By ref. */
  readonly verified: readonly Verified[];
  /** Statements that could not be verified here, and those that need not be. */
  readonly notes: readonly string[];
  /** True if statements could not be compared with the id of the repository, as that ref and any other evidence of it are missing. */
  readonly needsId: boolean;
}

/** Verifies all statements of a repository like a server that starts with these keys. Read-only. */
export async function verifyRepository({
  git,
  layout,
  refs,
  ledger,
  isClone = false,
  checkId,
}: VerifyOptions): Promise<Verification> {
  const values = new Map(refs.map(({ name, oid }) => [name, oid]));
  const notes: string[] = [];
  const verified: Verified[] = [];
  const idRef = [identityRef(layout), otherIdentityRef(layout)].find((ref) => values.has(ref)) ?? identityRef(layout);
  const idOid = values.get(idRef);
  const found = idOid === undefined ? undefined : await findId(git, idOid, ledger);
  if (idOid !== undefined) {
    const signed = found?.signed?.statement.repository;
    const message = found?.problem ?? (signed === undefined ? undefined : checkId?.(signed));
    const finding = message === undefined ? undefined : { reason: 'RepositoryId', message };
    verified.push({ ref: idRef, oid: idOid, kind: 'repository', finding });
  }
  const id = found?.signed?.statement.repository;
  const missing = `${idRef} is missing: which repository this is cannot be verified`;
  const known = id ?? (await idOfPublications({ git, refs, layout, ledger })) ?? '';
  if (id === undefined)
    notes.push(known === '' ? missing : `${idRef} is missing: only the publications show that this is ${known}`);
  const mistaken = id === undefined && known !== '' ? checkId?.(known) : undefined;
  if (mistaken !== undefined)
    verified.push({
      ref: idRef,
      oid: idOid ?? ZERO_OID,
      kind: 'repository',
      finding: { reason: 'RepositoryId', message: mistaken },
    });
  const index = await readIndex({ git, layout, refs, ledger }, known);
  const trust = readOnlyTrust(ledger, id ?? '', layout.branch);
  const deletions = await readDeletions({ git, trust, layout, refs }, index);
  for (const { ref, oid, finding } of deletions) verified.push({ ref, oid, kind: 'deletion', finding });
  const published = [...index.all()].flatMap((row) => {
    const { statement } = row.tip.facts.statement ?? {};
    return row.outOfBand !== undefined || statement === undefined || !isPublished(row)
      ? []
      : [
          {
            commit: row.tip.oid,
            name: `${row.path}/v${statement.revision}`,
            isShared: statement.sharedCommit !== undefined,
          },
        ];
  });
  const main = { git, branch: layout.branch, head: values.get(mainRef(layout)) };
  const later = await findLaterPublications({ ...main, trust: readOnlyTrust(ledger, known, layout.branch) }, published);
  for (const row of index.all()) {
    const isLeft = isPlaceholder(row) && row.outOfBand !== undefined && (await wasDeleted(git, row, deletions, index));
    if (!isLeft) verified.push(...verifiedRow(withRollback(row, later), layout));
  }
  const adoption = values.get(adoptionRef(layout));
  if (adoption !== undefined)
    verified.push({ ref: adoptionRef(layout), oid: adoption, kind: 'adoption', finding: index.adoptionDistrust });
  // In a clone it may just not have been fetched.
  if (id === undefined && !isClone && verified.some(({ kind }) => kind === 'publication' || kind === 'record'))
    verified.push({
      ref: idRef,
      oid: ZERO_OID,
      kind: 'repository',
      finding: { reason: 'RepositoryId', message: missing },
    });
  for (const { name: ref } of refs)
    if (unsignedRecordUid(layout, ref) !== undefined)
      notes.push(`${ref} is a record of an earlier version, which does not count; see "sluice repo adopt"`);
  const needsId =
    idOid === undefined && known === '' && verified.some(({ finding }) => finding?.reason === 'OtherRepository');
  return { id, verified: verified.sort((a, b) => (a.ref < b.ref ? -1 : 1)), notes, needsId };
}

/** A deletion, and what is wrong with the proof of it. */
interface Deletion {
  readonly ref: string;
  readonly oid: Oid;
  readonly path: string;
  readonly revision: number;
  /** Of the deleted publication; undefined if the deletion is not proven. */
  readonly commit: Oid | undefined;
  readonly finding: Verified['finding'];
}

async function readDeletions(
  {
    git,
    trust,
    layout,
    refs,
  }: Pick<VerifyOptions, 'git' | 'layout' | 'refs'> & { readonly trust: ReturnType<typeof readOnlyTrust> },
  index: RevisionIndex,
): Promise<Deletion[]> {
  const deletions: Deletion[] = [];
  for (const { name: ref, oid } of refs) {
    const place = deletedIn(layout, ref);
    if (place === undefined) continue;
    const result = await evaluateTombstone({ git, trust }, { ...place, oid, isAdopted: index.isAdopted(ref, oid) });
    const proven = result.flaw === undefined ? { commit: result.commit } : { commit: undefined };
    const revision = Number(place.version.slice(1));
    deletions.push({ ref, oid, path: place.path, revision, ...proven, finding: result.flaw });
  }
  return deletions;
}

/**
 * True if a package of the main branch is what a deleted publication left there, which stays until it is deleted on the branch. Of a
 * package that still has revisions it must be the last publication, with the same content.
 */
async function wasDeleted(
  git: GitRepository,
  { path, outOfBand, tip }: PackageRevision,
  deletions: readonly Deletion[],
  index: RevisionIndex,
): Promise<boolean> {
  const own = deletions.filter((deletion) => deletion.path === path);
  if (outOfBand?.reason !== 'MainDiffers') return outOfBand?.reason === 'NotPublished' && own.length > 0;
  const numbers = [...index.all()].flatMap((row) => (row.path === path && isPublished(row) ? [row.revision] : []));
  const last = own.reduce<Deletion | undefined>(
    (a, b) => (a !== undefined && a.revision > b.revision ? a : b),
    undefined,
  );
  if (last?.commit === undefined || last.revision <= Math.max(...numbers)) return false;
  const [left] = await git.statObjects([`${last.commit}:${path}`]);
  return left !== undefined && left.oid === tip.tree;
}

async function readIndex(options: VerifyOptions, id: string): Promise<RevisionIndex> {
  const { git, layout, refs, ledger } = options;
  const index = new RevisionIndex({
    ...{ git, layout, cache: new FactCache(), trust: readOnlyTrust(ledger, id, layout.branch) },
    ...{ repository: 'verify', namespace: 'default', isFirstLook: ledger.repository(id) === undefined },
  });
  await index.apply(refs.map(({ name, oid }) => ({ name, before: undefined, after: oid })));
  const backlog = new Set<string>();
  for await (const packages of index.checkBacklog()) for (const name of packages) backlog.add(name);
  if (backlog.size > 0) await index.reassess(backlog);
  return index;
}

/** The finding that a server has by its marks. */
function withRollback(row: PackageRevision, later: ReadonlyMap<string, Oid>): PackageRevision {
  const last = later.get(`${row.path}/v${row.revision}`);
  if (last === undefined || row.outOfBand !== undefined || !isPublished(row)) return row;
  const message = `a push set its tag back: the main branch has a later publication with this number at ${last}`;
  return { ...row, outOfBand: { reason: 'RolledBack', message } };
}

function verifiedRow(row: PackageRevision, layout: RepositoryLayout): Verified[] {
  const { ref, refOid: oid, outOfBand, recordOid, recordDistrust } = row;
  const verified: Verified[] = [];
  if (isPlaceholder(row)) {
    if (outOfBand !== undefined)
      verified.push({ ref: `${ref}:${row.path}`, oid, kind: 'placeholder', finding: outOfBand });
    return verified;
  }
  if (isPublished(row)) verified.push({ ref, oid, kind: 'publication', finding: outOfBand });
  if (recordOid !== undefined)
    verified.push({
      ref: `${layout.recordPrefix}${row.path}/${row.key.workspace}`,
      ...{ oid: recordOid, kind: 'record', finding: recordDistrust },
    });
  else if (recordDistrust !== undefined) verified.push({ ref, oid, kind: 'record', finding: recordDistrust });
  return verified;
}
