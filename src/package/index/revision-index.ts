import { inSlices } from '../../foundation/concurrency/in-slices.ts';
import type { GitRepository, Oid, RefChange } from '../../git/git-repository.ts';
import { adoptionRef, identityRef, mainRef, type RepositoryLayout, tombstonePrefix } from '../model/identity/layout.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import { ADOPTION_SCOPE, type Adoption } from '../trust/adoption.ts';
import type { Distrust } from '../trust/distrust.ts';
import { keptScope, publicationDigest } from '../trust/ledger/publication-mark.ts';
import type { NewMark } from '../trust/ledger/trust-ledger.ts';
import { readRepositoryId } from '../trust/repository-id.ts';
import type { OwnStatementFact, RepositoryTrust } from '../trust/repository-trust.ts';
import type { SignedPayload } from '../trust/statement/statement.ts';
import { DeltaReader } from './delta-reader.ts';
import type { Candidate } from './facts/candidate.ts';
import type { FactCache } from './facts/fact-cache.ts';
import { liveFacts } from './facts/live-facts.ts';
import { MainLines } from './facts/main-lines.ts';
import { PublicationMarks } from './marks/publication-marks.ts';
import { RaisedMarks } from './marks/raised-marks.ts';
import { RecordMarks } from './marks/record-marks.ts';
import type { PackageChanges } from './state/changed-packages.ts';
import { diffRefs } from './state/diff-refs.ts';
import type { IndexChange, IndexDelta } from './state/index-delta.ts';
import { IndexState } from './state/index-state.ts';
import { runAtOnce, runInSlices } from './steps.ts';
import { checkSignatures, type Unchecked } from './trust/signature-checks.ts';
import { publishedTagOf } from './trust/trust-rules.ts';

/** More changes than these are applied with pauses: a few milliseconds of work. */
const MAX_CHANGES_WITHOUT_PAUSE = 512;
/** Maximum number of unused facts in memory before they are dropped. */
const MAX_SPARE_FACTS = 2048;
/** Signatures that are checked before their revisions are shown again: some 30 ms of work in the thread pool. */
const CHECK_BATCH_SIZE = 512;

const OLD_LEDGER =
  'the trust ledger is older than the repository: it does not know statements that this server signed. Verdicts on drafts count once they are affirmed, and a copy of a lost key may have signed too: see docs/trust.md';

/**
 * The revisions of one repository, derived from its refs. It is brought up to date with ref changes, and the work follows the
 * number of changes: one draft that moves costs the same in a repository of ten packages or ten thousand. All reads
 * between two changes are consistent.
 */
export class RevisionIndex {
  readonly #layout: RepositoryLayout;
  readonly #cache: FactCache;
  readonly #reader: DeltaReader;
  readonly #trust: RepositoryTrust;
  readonly #lines: MainLines;
  readonly #publications: PublicationMarks;
  readonly #git: GitRepository;
  readonly #records: RecordMarks;
  /** The content of the ref with the id of the repository; undefined if it never existed. */
  #id: { readonly isThere: boolean; readonly written: string | undefined } | undefined;
  /** Lines of revoked keys wait to be read by `checkBacklog`. */
  #awaitsLines = false;
  /** Statements that wait for `checkBacklog`. */
  readonly #backlog: Unchecked[] = [];
  /** Those that the rows were not evaluated with. */
  readonly #raised: RaisedMarks;
  /** The last head that was accepted, where the main branch was rewritten without it. */
  #leftBehind: Oid | undefined;

  #state: IndexState;
  /** Kptfiles and records in use when they were counted last. */
  #factsInUse = 0;

  constructor(options: {
    repository: string;
    namespace: string;
    layout: RepositoryLayout;
    git: GitRepository;
    cache: FactCache;
    trust: RepositoryTrust;
    /** True if the repository was not in the ledger before. */
    isFirstLook: boolean;
  }) {
    const { repository, namespace, layout, trust, git, cache } = options;
    // The repository may get its id later.
    const origin = {
      ...{ repository, namespace, layout },
      get repositoryId() {
        return trust.repository;
      },
    };
    this.#trust = trust;
    this.#git = git;
    this.#layout = layout;
    this.#cache = cache;
    const lines = new MainLines(git);
    this.#lines = lines;
    this.#records = new RecordMarks(layout, trust, cache.records, options.isFirstLook);
    this.#raised = new RaisedMarks(trust);
    this.#publications = new PublicationMarks({ git, layout, trust, lines });
    this.#reader = new DeltaReader({ origin, layout, git, cache, trust, lines });
    const recordAt = (oid: Oid) => cache.records.get(oid) ?? undefined;
    this.#state = new IndexState({
      ...{ repository, namespace, layout, trust, recordAt },
      isOnLine: (commit, head) => lines.isOn(commit, head),
      isUnderWay: (oid) => cache.own.signerOf(oid) !== undefined,
    });
  }

  get(name: string): PackageRevision | undefined {
    return this.#state.rows.get(name);
  }

  all(): IterableIterator<PackageRevision> {
    return this.#state.rows.values();
  }

  /** The packages whose rows changed after a version that an earlier call returned. */
  changedSince(version: number | undefined): PackageChanges {
    return this.#state.changed.since(version);
  }

  get packageCount(): number {
    return this.#state.namesByPackage.size;
  }

  /** All revisions of one package. */
  ofPackage(packageName: string): PackageRevision[] {
    const names = this.#state.namesByPackage.get(packageName) ?? [];
    return Array.from(names, (name) => this.#state.rows.get(name) ?? []).flat();
  }

  /** A package above or below the given path, if there is one. */
  nestedWith(packageName: string): string | undefined {
    return this.#state.packages.nestedWith(packageName);
  }

  /** Returns the object id of a ref in the index. */
  ref(name: string): Oid | undefined {
    return this.#state.refs.get(name);
  }

  /** See `RevisionRefs.conflictWith`. */
  tagConflict(tag: string): string | undefined {
    return this.#state.tagNames.conflictWith(tag);
  }

  /** The refs of what is known of deleted publications. */
  tombstoneRefs(): string[] {
    const prefix = tombstonePrefix(this.#layout);
    return [...this.#state.refs.keys()].filter((name) => name.startsWith(prefix));
  }

  /** The refs of all records, also of those of which the revision is gone. */
  recordRefs(): [name: string, oid: Oid][] {
    return [...this.#state.refs].filter(([name]) => name.startsWith(this.#layout.recordPrefix));
  }

  get mainHead(): Oid | undefined {
    return this.#state.refs.get(mainRef(this.#layout));
  }

  /** True if a commit is on the first-parent line of the main branch; `head` is its head where that is not the one of the index. */
  async isOnMain(commit: Oid, head = this.mainHead): Promise<boolean> {
    return (await this.#lines.find(new Set([commit]), head)).has(commit);
  }

  /** The last head of the main branch that was accepted, if the branch was rewritten without it. */
  get leftBehind(): Oid | undefined {
    return this.#leftBehind === this.#trust.mainHead ? this.#leftBehind : undefined;
  }

  /** The adoption in its ref. */
  get adoption(): Adoption | undefined {
    return this.#state.rules.adoption;
  }

  /** True for a ref that an operator adopted as it is. */
  isAdopted(ref: string, oid: Oid): boolean {
    return this.#state.rules.isAdopted(ref, oid);
  }

  /** Marks that preserve the publications which count now, when a rewritten main branch is accepted. */
  marksOfKept(): NewMark[] {
    const marks: NewMark[] = [];
    for (const candidate of this.#state.candidates.values()) {
      const row = this.get(candidate.name);
      if (candidate.lifecycle !== 'Published' || row?.ref !== candidate.ref || row.outOfBand !== undefined) continue;
      const scope = keptScope(this.#layout.branch, candidate.path, `v${candidate.revision}`);
      marks.push(this.#trust.markOf(scope, publicationDigest(publishedTagOf(candidate))));
    }
    return marks;
  }

  /** Problems of the statements about the repository itself; one sentence each. */
  get flaws(): readonly string[] {
    const adoption = this.adoptionDistrust;
    const adopted = adoption && `adoptions do not count: ${adoptionRef(this.#layout)}: ${adoption.message}`;
    return [adopted, this.#idFlaw(), this.#records.isLedgerOld ? OLD_LEDGER : undefined].filter(
      (flaw) => flaw !== undefined,
    );
  }

  /** Reason why the content of the adoption ref does not count; undefined if it does, or if it is empty. */
  get adoptionDistrust(): Distrust | undefined {
    const { adoption } = this.#state.rules;
    if (adoption === undefined) return undefined;
    return this.#trust.distrustOfRecord(adoption.fact, ADOPTION_SCOPE);
  }

  /** Returns the facts that a cache must store for a fast restart: only those of the current revisions. */
  liveFacts(): Promise<FactCache> {
    const { candidates, mainTip: tip, placeholders } = this.#state;
    const records = this.recordRefs().map(([, oid]) => oid);
    const main = tip && { tip, placeholders: [...placeholders.values()] };
    return liveFacts(this.#cache, [...candidates.values()], records, main);
  }

  /** Returns the differences between the given refs and those of the index. */
  diff(refs: readonly { name: string; oid: Oid }[]): RefChange[] {
    return diffRefs(this.#state.refs, refs);
  }

  /**
   * Applies ref changes and returns the changed revisions. If an object cannot be read, nothing is applied, and the next call
   * finds the same changes. One call at a time. Readers see all changes or none; many changes are applied to a copy, with pauses.
   */
  async apply(changes: readonly RefChange[]): Promise<IndexChange[]> {
    // Statements after the revocation of a key must not be evaluated as if they were before it.
    this.#trust.readVersion();
    const { unchecked, backlog } = await this.#reader.read(this.#state, changes);
    if (this.#unreadHeads().length > 0) {
      // Whole lines of history: where there is much of it, they are read behind.
      if (changes.length > MAX_CHANGES_WITHOUT_PAUSE) this.#awaitsLines = true;
      else for (const head of this.#unreadHeads()) await this.#lines.read(head);
      this.#state.invalidate();
    }
    await this.#noteId(changes.find(({ name }) => name === identityRef(this.#layout)));
    const isOutdated = this.#records.noteOldLedger(unchecked);
    this.#records.raise(unchecked);
    await this.#notePublications(unchecked);
    await this.#publications.noteDeleted(this.#state, unchecked, this.#records.isFirstLook);
    const followMain = unchecked.main && (await this.#mainMove(unchecked.main.tip?.oid));
    this.#records.endFirstLook();
    for (const item of backlog) this.#backlog.push(item);
    let changed: IndexChange[];
    const packages = isOutdated
      ? new Set([...unchecked.packages, ...this.#state.namesByPackage.keys()])
      : unchecked.packages;
    const taken = { ...unchecked, packages };
    const raised = this.#raised.read();
    if (raised.scopes === undefined) this.#state.invalidate();
    if (changes.length <= MAX_CHANGES_WITHOUT_PAUSE) changed = runAtOnce(this.#state.apply(taken, raised.scopes));
    else {
      const next = await this.#state.copy();
      changed = await runInSlices(next.apply(taken, raised.scopes));
      this.#state = next;
    }
    this.#raised.noteUsed(raised);
    this.#cache.forgetEarlier();
    this.#cache.own.endWrites(changes);
    followMain?.();
    await this.#forgetUnused();
    return changed;
  }

  /** True if marks of this repository were raised since the last `apply`: without changes of refs too they can change revisions. */
  hasRaisedMarks(): boolean {
    return this.#raised.hasOwn();
  }

  /** Notes the keys with which this process signed the statements in these commits. */
  noteSigner(commit: Oid, fingerprint: string): void {
    this.#cache.own.noteSigner(commit, fingerprint);
  }

  /** Notes a record that this process signed and wrote: it need not be read and validated, nor its signature be checked. */
  noteRecord(commit: Oid, signed: SignedPayload, fact: OwnStatementFact): void {
    this.#cache.own.noteRecord(commit, signed, fact);
  }

  /** Forgets the statements in commits that will not be written. */
  forgetOwn(commits: Iterable<Oid>): void {
    for (const commit of commits) this.#cache.own.forget(commit);
  }

  /** Numbers of facts in memory: those of the index, and records of writes that are under way. */
  get factCounts(): { readonly facts: number; readonly ownRecords: number } {
    return { facts: this.#cache.size, ownRecords: this.#cache.own.recordCount };
  }

  /**
   * Checks the backlog of statements, as at a first start. Yields the affected packages in batches; `reassess` then applies the
   * results. One call at a time.
   */
  async *checkBacklog(): AsyncGenerator<ReadonlySet<string>> {
    // First, so that a deleted publication does not count in between.
    yield* this.#publications.evaluateBacklog(() => this.#state);
    while (this.#backlog.length > 0) {
      const slice = this.#backlog.slice(0, CHECK_BATCH_SIZE);
      await checkSignatures(slice, this.#trust, this.#cache.own);
      await this.#reader.lookForMain(slice, this.mainHead);
      const isOld = this.#records.noteOldLedgerBy(slice, this.#state.refs);
      this.#records.raiseChecked(slice, this.#state.refs);
      const tags = slice.flatMap((item) => ('tip' in item ? item : []));
      const present = tags.map(({ ref, tip }) => ({ tip, candidate: this.#state.candidates.get(ref) }));
      await this.#publications.noteFound(
        this.#state,
        present.map(({ tip, candidate }) => (candidate?.tip === tip ? candidate : undefined)),
      );
      // Removed only now, so that the next call after an error continues with the same ones. `apply` may have appended
      // others.
      this.#backlog.splice(0, slice.length);
      yield new Set(isOld ? this.#state.namesByPackage.keys() : slice.map((item) => item.package));
    }
    if (!this.#awaitsLines) return;
    for (const head of this.#unreadHeads()) await this.#lines.read(head);
    this.#awaitsLines = false;
    yield new Set(this.#state.namesByPackage.keys());
  }

  /** A push does not change the identity of the repository; but the attempt is reported to the operator. */
  async #noteId(change: RefChange | undefined): Promise<void> {
    if (change === undefined) return;
    const { after } = change;
    this.#id = { isThere: after !== undefined, written: after && (await readRepositoryId(this.#git, after)) };
  }

  #idFlaw(): string | undefined {
    const { repository } = this.#trust;
    if (this.#id === undefined || this.#id.written === repository) return undefined;
    const how = this.#id.isThere ? 'was replaced by a push' : 'is gone';
    return `${identityRef(this.#layout)} ${how}; the id of the repository stays ${repository}`;
  }

  /** Ends of lines with publications of revoked keys that were not read by this process. */
  #unreadHeads(): string[] {
    return this.#trust.revokedHeads().filter((head) => !this.#lines.has(head));
  }

  get hasBacklog(): boolean {
    return this.#backlog.length > 0 || this.#awaitsLines || this.#publications.hasBacklog;
  }

  /**
   * Evaluates revisions again after a change that is not one of refs: trusted keys, adoptions, or results of checks. Returns the
   * changed revisions. Must not run concurrently with `apply`.
   */
  async reassess(packages: Iterable<string> = [...this.#state.namesByPackage.keys()]): Promise<IndexChange[]> {
    for (const head of this.#trust.revokedHeads()) await this.#lines.read(head);
    const concerned = new Set(packages);
    // A key that is trusted since they were found.
    const found: Unchecked[] = [];
    await inSlices(this.#state.candidates.values(), ({ lifecycle, outOfBand, key, tip, ref }) => {
      if (
        lifecycle === 'Published' &&
        outOfBand === undefined &&
        concerned.has(key.package) &&
        this.#reader.awaitsMain(tip)
      )
        found.push({ oid: tip.oid, package: key.package, tip, ref });
    });
    await this.#reader.lookForMain(found, this.mainHead);
    const adoption = this.ref(adoptionRef(this.#layout));
    if (adoption !== undefined && !this.#reader.isAdoptionCurrent)
      this.#state.rules.adoption = (await this.#reader.readAdoption(this.#state, adoption, new Set())).present;
    return runInSlices(this.#state.reassess(concerned));
  }

  /**
   * Prepares the update of the ledger for a new head of the main branch: the ledger follows it, but not to a rewritten line, so
   * that the commits before stay known.
   */
  async #mainMove(head: Oid | undefined): Promise<(() => void) | undefined> {
    const before = this.#trust.mainHead;
    if (head === undefined || head === before) return undefined;
    // The branch is new: the repository was empty, or is also registered with another branch.
    if (before === undefined) return () => this.#trust.noteMain(head);
    // Checking whether it returns to the line would require a walk of the whole line at each publication.
    if (this.#leftBehind === before) return undefined;
    const isOnLine = (await this.#lines.find(new Set([before]), head)).has(before);
    return () => {
      if (isOnLine) this.#trust.noteMain(head);
      else this.#leftBehind = before;
    };
  }

  /** Records which publications count when tags are moved, deleted, or unknown to the ledger. */
  async #notePublications({ refs, candidates }: IndexDelta): Promise<void> {
    const after = new Map(refs.map(({ name, after }) => [name, after]));
    const refAfter = (ref: string) => (after.has(ref) ? after.get(ref) : this.#state.refs.get(ref));
    await this.#publications.noteReplaced(this.#state, candidates, refAfter);
    // Unchanged candidates of an earlier process were checked then.
    const isKnown = ([ref, candidate]: [string, Candidate | undefined]) =>
      this.#cache.refFacts.get(ref)?.oid === candidate?.refOid;
    const found = [...candidates].flatMap((entry) => (isKnown(entry) ? [] : entry[1]));
    await this.#publications.noteFound(this.#state, found);
  }

  async #forgetUnused(): Promise<void> {
    if (this.#cache.passing > MAX_SPARE_FACTS) this.#cache.forgetPassing();
    const { size } = this.#cache;
    // Facts from the file were in use when it was written.
    if (this.#factsInUse === 0) this.#factsInUse = size;
    if (size <= 2 * this.#factsInUse + MAX_SPARE_FACTS) return;
    this.#cache.keepOnly(await this.liveFacts());
    this.#factsInUse = this.#cache.size;
  }

  /** Returns the result of `apply` without applying. Must not run concurrently with `apply`. */
  async preview(changes: readonly RefChange[]): Promise<IndexChange[]> {
    const forget = this.#cache.trace();
    try {
      const { unchecked } = await this.#reader.read(this.#state, changes);
      const back = this.#state.inverse(unchecked);
      const changed = runAtOnce(this.#state.apply(unchecked));
      runAtOnce(this.#state.apply(back));
      return changed;
    } finally {
      forget();
    }
  }
}
