import { type GitRepository, type Oid, type Ref, ZERO_OID } from '../../git/git-repository.ts';
import { FactCache } from '../index/facts/fact-cache.ts';
import { RevisionIndex } from '../index/revision-index.ts';
import { evaluateTombstone } from '../index/trust/deletion-proof.ts';
import {
  adoptionRef,
  deletedIn,
  draftRef,
  identityRef,
  isOtherLayout,
  isProbe,
  mainRef,
  otherIdentityRef,
  parseRef,
  proposedRef,
  type RepositoryLayout,
  recordPrefixIn,
  tombstonePrefix,
  tombstoneRef,
  unsignedRecordUid,
} from '../model/identity/layout.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import { ADOPTION_SCOPE, readAdoption } from '../trust/adoption.ts';
import type { TrustLedger } from '../trust/ledger/trust-ledger.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';
import { MainPush } from './main-push.ts';
import type { PushedRef } from './pushed-ref.ts';
import { findId, readOnlyTrust } from './read-only-trust.ts';
import { recordFactAt } from './record-fact-at.ts';
import { taggedCommit } from './tagged-commit.ts';

export interface RefusedUpdate {
  readonly ref: string;
  /** One sentence for the pusher. */
  readonly message: string;
}

/**
 * Returns the refs of a push that must not be accepted: tags, records, the main branch, adoptions and the id of the repository
 * only move with statements that trusted keys signed. Drafts, proposals and refs that Sluice does not use are not checked.
 */
export async function checkPush(options: {
  readonly git: GitRepository;
  readonly layout: RepositoryLayout;
  /** As they are before the push. */
  readonly refs: readonly Ref[];
  readonly ledger: TrustLedger;
  readonly pushed: readonly PushedRef[];
}): Promise<RefusedUpdate[]> {
  const check = await PushCheck.open(options);
  const refusals: RefusedUpdate[] = [];
  for (const update of options.pushed) {
    const message = await check.refusalOf(update);
    if (message !== undefined) refusals.push({ ref: update.ref, message });
  }
  return refusals;
}

type Options = Parameters<typeof checkPush>[0];

/** The candidates of the pushed tags; a push may contain thousands, each of which is looked up. */
interface IndexedRows {
  readonly byRef: ReadonlyMap<string, PackageRevision>;
  /** Refs that are not shown, and the one that is shown in their place. */
  readonly hiddenBy: ReadonlyMap<string, string>;
}

class PushCheck {
  readonly #git: GitRepository;
  readonly #layout: RepositoryLayout;
  readonly #ledger: TrustLedger;
  readonly #pushed: readonly PushedRef[];
  readonly #before: ReadonlyMap<string, Oid>;
  /** Refs as they are once the push is accepted. */
  readonly #after: ReadonlyMap<string, Oid>;
  readonly #trust: RepositoryTrust;
  /** True where it is settled which of the two places records have. */
  readonly #hasRecords: boolean;
  #rowsBefore: Promise<IndexedRows> | undefined;
  #rowsAfter: Promise<IndexedRows> | undefined;
  readonly #main: MainPush;

  private constructor({ git, layout, refs, ledger, pushed }: Options, trust: RepositoryTrust) {
    this.#git = git;
    this.#layout = layout;
    this.#ledger = ledger;
    this.#pushed = pushed;
    this.#before = new Map(refs.map(({ name, oid }) => [name, oid]));
    const after = new Map(this.#before);
    for (const { ref, new: oid } of pushed) {
      if (oid === ZERO_OID) after.delete(ref);
      else after.set(ref, oid);
    }
    this.#after = after;
    this.#hasRecords = recordPrefixIn([...this.#before.keys()]) === layout.recordPrefix;
    this.#trust = trust;
    this.#main = new MainPush({ git, layout, trust, after, pushed });
  }

  static async open(options: Options): Promise<PushCheck> {
    const { git, layout, refs, ledger, pushed } = options;
    const oidOf = (ref: string) => refs.find(({ name }) => name === ref)?.oid;
    const own = identityRef(layout);
    // A repository gets its id with the first push of a server.
    const present = oidOf(own) ?? oidOf(otherIdentityRef(layout)) ?? pushed.find((update) => update.ref === own)?.new;
    const found = present === undefined || present === ZERO_OID ? undefined : await findId(git, present, ledger);
    const id = found?.problem === undefined ? (found?.signed?.statement.repository ?? '') : '';
    return new PushCheck(options, readOnlyTrust(ledger, id, layout.branch));
  }

  /** Returns why an update must not be accepted; undefined if it may. */
  refusalOf(update: PushedRef): Promise<string | undefined> | string | undefined {
    const { ref } = update;
    const layout = this.#layout;
    const isDeleted = update.new === ZERO_OID;
    const other = otherIdentityRef(layout);
    if (ref === identityRef(layout) || (ref === other && this.#before.has(other)))
      return isDeleted ? 'the id of the repository must stay' : this.#idRefusal(update);
    if (!isDeleted && this.#hasRecords && isOtherLayout(layout, ref))
      return `records of this repository are below ${layout.recordPrefix}`;
    if (ref === adoptionRef(layout))
      return isDeleted ? 'the list of adoptions must stay; "sluice repo adopt" changes it' : this.#adoption(update);
    if (ref.startsWith(tombstonePrefix(layout))) return this.#tombstone(update);
    if (unsignedRecordUid(layout, ref) !== undefined) return this.#unsignedRecord(update);
    const meaning = parseRef(layout, ref);
    // A temporary ref: Sluice tests where it may store records.
    if (isProbe(layout, ref)) return undefined;
    if (!isDeleted && this.#isInTheWay(ref)) return 'it conflicts with the refs that Sluice keeps below this name';
    if (meaning.kind === 'main') return isDeleted ? 'the main branch must stay' : this.#main.refusalOf(update);
    if (meaning.kind === 'record') return isDeleted ? this.#recordDeletion(meaning) : this.#record(update, meaning);
    if (meaning.kind === 'published') return isDeleted ? this.#tagDeletion(meaning) : this.#tag(update, meaning);
    return undefined;
  }

  /** Git stores no ref whose name is a folder of another one. */
  #isInTheWay(ref: string): boolean {
    const { recordPrefix, directory } = this.#layout;
    const folder = directory === '' ? recordPrefix : `${recordPrefix}${directory}/`;
    if (ref.startsWith(folder)) return parseRef(this.#layout, ref).kind !== 'record';
    const single = [identityRef(this.#layout), adoptionRef(this.#layout)];
    return folder.startsWith(`${ref}/`) || single.some((name) => ref.startsWith(`${name}/`));
  }

  async #idRefusal({ old, new: oid }: PushedRef): Promise<string | undefined> {
    const { signed, problem } = await findId(this.#git, oid, this.#ledger);
    if (problem !== undefined) return `it is not a valid id: ${problem}`;
    const present = old === ZERO_OID ? this.#before.get(otherIdentityRef(this.#layout)) : old;
    if (present === undefined) return undefined;
    const before = (await findId(this.#git, present, this.#ledger)).signed?.statement.repository;
    if (before === undefined || signed?.statement.previous === before) return undefined;
    return `it does not follow the id ${before}, which the repository has`;
  }

  async #adoption({ old, new: oid }: PushedRef): Promise<string | undefined> {
    const { fact } = await readAdoption(this.#git, oid, this.#trust);
    const distrust = this.#trust.distrustOfRecord(fact, ADOPTION_SCOPE);
    if (distrust !== undefined) return `the adoption does not count: ${distrust.message}`;
    const before = old === ZERO_OID ? undefined : (await readAdoption(this.#git, old, this.#trust)).fact;
    if ((before?.head.sequence ?? 0) < (fact?.head.sequence ?? 0)) return undefined;
    return 'the adoption is not newer than the present one';
  }

  async #record(
    { old, new: oid }: PushedRef,
    { path, workspace }: { readonly path: string; readonly workspace: string },
  ): Promise<string | undefined> {
    const fact = await recordFactAt(this.#git, oid, this.#trust);
    const distrust = this.#trust.distrustOfRecord(fact, { package: path, workspace });
    if (distrust !== undefined) return `the record does not count: ${distrust.message}`;
    const before = old === ZERO_OID ? undefined : await recordFactAt(this.#git, old, this.#trust);
    if ((before?.head.sequence ?? 0) < (fact?.head.sequence ?? 0)) return undefined;
    return 'the record is not newer than the present one';
  }

  /** A record ends with its draft. */
  #recordDeletion({
    package: packageName,
    workspace,
  }: {
    readonly package: string;
    readonly workspace: string;
  }): string | undefined {
    const key = { repository: '', package: packageName, workspace };
    const branch = [draftRef, proposedRef].map((refOf) => refOf(this.#layout, key)).find((ref) => this.#after.has(ref));
    return branch === undefined ? undefined : `the record must stay as long as ${branch} exists`;
  }

  /** An adoption moves or removes it; both with the next statement about adoptions, which is checked separately. */
  #unsignedRecord({ new: oid }: PushedRef): string | undefined {
    if (oid !== ZERO_OID) return 'the record does not count: it carries no signed statement';
    const adoption = adoptionRef(this.#layout);
    const isAdopted = this.#pushed.some(({ ref, new: other }) => ref === adoption && other !== ZERO_OID);
    return isAdopted ? undefined : 'records of earlier versions stay until "sluice repo adopt" converts them';
  }

  /** It is added with the deletion of its tag, and removed with another publication of the number. */
  async #tombstone({ ref, old, new: oid }: PushedRef): Promise<string | undefined> {
    const place = deletedIn(this.#layout, ref);
    if (
      place === undefined ||
      ref !== tombstonePrefix(this.#layout) + encodeURIComponent(`${place.path}/${place.version}`)
    )
      return 'no record of a deletion has such a name';
    const { tag } = place;
    if (oid === ZERO_OID)
      return this.#after.has(tag) ? undefined : `the record that ${tag} was deleted in order must stay`;
    const surroundings = { git: this.#git, trust: this.#trust };
    const result = await evaluateTombstone(surroundings, { ...place, oid, isAdopted: false });
    if (result.flaw !== undefined) return `the record of the deletion does not count: ${result.flaw.message}`;
    if (this.#after.has(tag)) return `${tag} is still there`;
    const before = this.#before.get(tag);
    if (before === undefined) return old === ZERO_OID ? undefined : `${tag} was removed already`;
    if ((await taggedCommit(this.#git, before)) === result.commit) return undefined;
    return `the record of the deletion is about the publication at ${result.commit}, which ${tag} does not point to`;
  }

  /** The tombstone is checked separately. */
  #tagDeletion(meaning: { readonly package: string; readonly version: string }): string | undefined {
    const tombstone = tombstoneRef(this.#layout, meaning.package, meaning.version);
    const isDeletedInOrder = this.#pushed.some(({ ref: other, new: oid }) => other === tombstone && oid !== ZERO_OID);
    return isDeletedInOrder ? undefined : 'publications are deleted through Sluice, which leaves a signed record of it';
  }

  async #tag(
    { ref, old, new: oid }: PushedRef,
    meaning: { readonly package: string; readonly version: string },
  ): Promise<string | undefined> {
    if (this.#before.has(tombstoneRef(this.#layout, meaning.package, meaning.version)) && !(await this.#isNew(oid)))
      return 'it was deleted; its number can only be reused by a new publication';
    this.#rowsAfter ??= this.#readRows(this.#after);
    const { hiddenBy, byRef } = await this.#rowsAfter;
    const hiding = hiddenBy.get(ref);
    if (hiding !== undefined) return `it claims the same revision as ${hiding}`;
    const flaw = byRef.get(ref)?.outOfBand;
    if (flaw !== undefined) return `it is no publication: ${flaw.message}`;
    // A tag on a commit without such a package is not checked, unless it was a publication.
    if (old === ZERO_OID || old === oid) return undefined;
    this.#rowsBefore ??= this.#readRows(this.#before);
    const before = (await this.#rowsBefore).byRef.get(ref);
    if (before === undefined || before.outOfBand !== undefined) return undefined;
    return 'a publication does not move; publish the next revision, or delete it through Sluice';
  }

  /** True for a tag on a commit that this push brings to the main branch. */
  async #isNew(tag: Oid): Promise<boolean> {
    const main = this.#pushed.find(({ ref }) => ref === mainRef(this.#layout));
    const line = main === undefined ? undefined : await this.#main.lineOf(main);
    const commit = await taggedCommit(this.#git, tag);
    return commit !== undefined && line !== undefined && typeof line !== 'string' && line.includes(commit);
  }

  /** Returns the candidates of the pushed tags with these refs, as the server would list them. */
  async #readRows(values: ReadonlyMap<string, Oid>): Promise<IndexedRows> {
    const layout = this.#layout;
    const wanted = [mainRef(layout), adoptionRef(layout), ...this.#pushed.map(({ ref }) => ref)];
    const isTag = (ref: string) =>
      ref.startsWith('refs/tags/') || ref === mainRef(layout) || ref === adoptionRef(layout);
    const changes = [...new Set(wanted)].filter(isTag).flatMap((name) => {
      const after = values.get(name);
      return after === undefined ? [] : { name, before: undefined, after };
    });
    const index = new RevisionIndex({
      ...{ git: this.#git, layout, cache: new FactCache(), trust: this.#trust },
      ...{ repository: 'verify', namespace: 'default', isFirstLook: true },
    });
    await index.apply(changes);
    const backlog = new Set<string>();
    for await (const packages of index.checkBacklog()) for (const name of packages) backlog.add(name);
    if (backlog.size > 0) await index.reassess(backlog);
    const byRef = new Map<string, PackageRevision>();
    const hiddenBy = new Map<string, string>();
    for (const row of index.all()) {
      byRef.set(row.ref, row);
      for (const hidden of row.hides) hiddenBy.set(hidden, row.ref);
    }
    return { byRef, hiddenBy };
  }
}
