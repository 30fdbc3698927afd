import { inSlices } from '../../foundation/in-slices.ts';
import type { GitRepository, Oid, RefChange } from '../../git/git-repository.ts';
import {
  adoptionRef,
  identityRef,
  mainRef,
  packagePath,
  parseRef,
  type RepositoryLayout,
  recordRef,
} from '../model/layout.ts';
import type { PackageRevision } from '../model/package-revision.ts';
import { ADOPTION_SCOPE, type Adoption, readAdoption } from '../trust/adoption.ts';
import { keptScope, publicationDigest } from '../trust/publication-mark.ts';
import { readRepositoryId } from '../trust/repository-id.ts';
import type { Distrust, RepositoryTrust } from '../trust/repository-trust.ts';
import type { StatementHead } from '../trust/statement.ts';
import type { NewMark } from '../trust/trust-ledger.ts';
import {
  type Candidate,
  headText,
  knownCandidate,
  type Origin,
  placeholderCandidate,
  type RefTarget,
  refCandidate,
} from './candidate.ts';
import type { FactCache, FolderFact, ShownFact } from './fact-cache.ts';
import { FactReader } from './fact-reader.ts';
import { folderChanges } from './folder-changes.ts';
import { type IndexChange, IndexState, type MainNews, type News } from './index-state.ts';
import { liveFacts } from './live-facts.ts';
import { MainLines } from './main-lines.ts';
import { PublicationMarks } from './publication-marks.ts';
import type { RecordFact } from './record-fact.ts';
import { checkSignatures, MAX_CHECKED_AT_ONCE, type Unchecked } from './signature-checks.ts';
import { runAtOnce, runInSlices } from './steps.ts';
import type { TipFact } from './tip-fact.ts';
import { publishedTagOf } from './trust-rules.ts';

export type { IndexChange } from './index-state.ts';

/** More changes than these are applied with pauses: a few milliseconds of work. */
const MAX_CHANGES_WITHOUT_PAUSE = 512;
/** So many facts are kept in memory beyond what is in use, before the rest is dropped. */
const MAX_SPARE_FACTS = 2048;
/** Signatures that are checked before their revisions are shown again: some 30 ms of work in the thread pool. */
const CHECK_BATCH_SIZE = 512;

const OLD_LEDGER =
  'the trust ledger is older than the repository: it does not know statements that this server signed. Verdicts on drafts count once they are affirmed, and a copy of a lost key may have signed too: see docs/trust.md';

/**
 * The revisions of one repository, derived from its refs. It is brought up to date with ref changes, and the work follows the
 * number of changes: one draft that moves costs the same in a repository of ten packages or ten thousand. All that is asked of it
 * between two changes fits together.
 */
export class RevisionIndex {
  readonly #origin: Origin;
  readonly #layout: RepositoryLayout;
  readonly #cache: FactCache;
  readonly #reader: FactReader;
  readonly #trust: RepositoryTrust;
  readonly #lines: MainLines;
  readonly #publications: PublicationMarks;
  readonly #git: GitRepository;
  /** Nothing is known of this repository: its records may be older than the last ones. */
  #isFirstLook: boolean;
  readonly #beganWithFirstLook: boolean;
  /** Version of the trusted keys at which the adoption was read. */
  #adoptionReadAt = -1;
  /** A statement showed it since this process started. */
  #isLedgerOld = false;
  /** What the ref with the id of the repository holds; undefined if there was never one. */
  #id: { readonly isThere: boolean; readonly written: string | undefined } | undefined;
  /** Lines of revoked keys wait to be read by `checkBacklog`. */
  #awaitsLines = false;
  /** Statements that wait for `checkBacklog`. */
  readonly #backlog: Unchecked[] = [];
  /** Version of the marks that the rows were evaluated with. */
  #raisedVersion = 0;
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
    /** True if the ledger did not know the repository before. */
    isFirstLook: boolean;
  }) {
    const { repository, namespace, layout, trust } = options;
    // The repository may get its id later.
    this.#origin = {
      ...{ repository, namespace, layout },
      get repositoryId() {
        return trust.repository;
      },
    };
    this.#trust = options.trust;
    this.#isFirstLook = options.isFirstLook;
    this.#beganWithFirstLook = options.isFirstLook;
    this.#git = options.git;
    this.#lines = new MainLines(options.git);
    this.#publications = new PublicationMarks({ git: options.git, layout, trust, lines: this.#lines });
    this.#layout = options.layout;
    this.#cache = options.cache;
    this.#reader = new FactReader(options.git, options.cache);
    const recordAt = (oid: Oid) => options.cache.records.get(oid) ?? undefined;
    this.#state = new IndexState({
      ...{ repository, namespace, layout, trust, recordAt },
      isOnLine: (commit, head) => this.#lines.isOn(commit, head),
      isUnderWay: (commit) => this.#cache.ownSigners.has(commit),
    });
  }

  get(name: string): PackageRevision | undefined {
    return this.#state.rows.get(name);
  }

  all(): IterableIterator<PackageRevision> {
    return this.#state.rows.values();
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

  /** What a ref points to, as far as the index knows. */
  ref(name: string): Oid | undefined {
    return this.#state.refs.get(name);
  }

  get mainHead(): Oid | undefined {
    return this.#state.refs.get(mainRef(this.#layout));
  }

  /** True if a commit is on the first-parent line of the main branch. */
  async isOnMain(commit: Oid): Promise<boolean> {
    return (await this.#lines.find(new Set([commit]), this.mainHead)).has(commit);
  }

  /** The last head of the main branch that was accepted, if the branch was rewritten without it. */
  get leftBehind(): Oid | undefined {
    return this.#leftBehind === this.#trust.mainHead ? this.#leftBehind : undefined;
  }

  /** What an operator adopted, as the ref has it. */
  get adoption(): Adoption | undefined {
    return this.#state.rules.adoption;
  }

  /** True for a ref that an operator adopted as it is. */
  isAdopted(ref: string, oid: Oid): boolean {
    return this.#state.rules.isAdopted(ref, oid);
  }

  /** Marks that keep the publications which count now, where the main branch is accepted as it was rewritten. */
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

  /** What is wrong with the statements about the repository itself; one sentence each. */
  get flaws(): readonly string[] {
    const adoption = this.adoptionDistrust;
    const adopted = adoption && `adoptions do not count: ${adoptionRef(this.#layout)}: ${adoption.message}`;
    return [adopted, this.#idFlaw(), this.#isLedgerOld ? OLD_LEDGER : undefined].filter((flaw) => flaw !== undefined);
  }

  /** Why what the adoption ref holds does not count; undefined if it does, or if there is none. */
  get adoptionDistrust(): Distrust | undefined {
    const { adoption } = this.#state.rules;
    if (adoption === undefined) return undefined;
    return this.#trust.distrustOfRecord(adoption.fact, ADOPTION_SCOPE);
  }

  /** What a cache has to keep for a fast restart: what the present revisions are made of, and nothing else. */
  liveFacts(): Promise<FactCache> {
    const { candidates, refs, mainTip: tip, placeholders } = this.#state;
    const records = [...refs].flatMap(([name, oid]) => (name.startsWith(this.#layout.recordPrefix) ? oid : []));
    const main = tip && { tip, placeholders: [...placeholders.values()] };
    return liveFacts(this.#cache, [...candidates.values()], records, main);
  }

  /** What differs between the refs given and those that the index stands for. */
  diff(refs: readonly { name: string; oid: Oid }[]): RefChange[] {
    const changes: RefChange[] = [];
    let known = 0;
    for (const { name, oid } of refs) {
      const before = this.#state.refs.get(name);
      if (before !== undefined) known += 1;
      if (before !== oid) changes.push({ name, before, after: oid });
    }
    // This is asked every second or so, and hardly ever is one gone.
    if (known === this.#state.refs.size) return changes;
    const seen = new Set(refs.map(({ name }) => name));
    for (const [name, before] of this.#state.refs) {
      if (!seen.has(name)) changes.push({ name, before, after: undefined });
    }
    return changes;
  }

  /**
   * Applies ref changes and returns the revisions that changed by them. If something cannot be read, nothing is applied, and the
   * next look finds the same changes again. One call at a time. Others see all of it or nothing; many changes are made to a copy,
   * with pauses.
   */
  async apply(changes: readonly RefChange[]): Promise<IndexChange[]> {
    // What comes after a key was revoked must not be evaluated as if it had come before.
    this.#trust.readVersion();
    const { news, late } = await this.#read(changes);
    if (this.#unreadHeads().length > 0) {
      // Whole lines of history: where there is much of it, they are read behind.
      if (changes.length > MAX_CHANGES_WITHOUT_PAUSE) this.#awaitsLines = true;
      else for (const head of this.#unreadHeads()) await this.#lines.read(head);
      this.#state.invalidate();
    }
    await this.#noteId(changes.find(({ name }) => name === identityRef(this.#layout)));
    const isOutdated = this.#noteOldLedger(news);
    this.#raiseMarks(news);
    await this.#notePublications(news);
    await this.#publications.noteDeleted(this.#state, news, this.#isFirstLook);
    const followMain = news.main && (await this.#mainMove(news.main.tip?.oid));
    this.#isFirstLook = false;
    for (const item of late) this.#backlog.push(item);
    let changed: IndexChange[];
    const packages = isOutdated ? new Set([...news.packages, ...this.#state.namesByPackage.keys()]) : news.packages;
    const taken = { ...news, packages };
    const { version, scopes } = this.#trust.raisedSince(this.#raisedVersion);
    if (scopes === undefined) this.#state.invalidate();
    if (changes.length <= MAX_CHANGES_WITHOUT_PAUSE) changed = runAtOnce(this.#state.takeIn(taken, scopes));
    else {
      const next = await this.#state.copy();
      changed = await runInSlices(next.takeIn(taken, scopes));
      this.#state = next;
    }
    this.#raisedVersion = version;
    this.#cache.forgetEarlier();
    this.#cache.ownSigners.clear();
    followMain?.();
    await this.#forgetUnused();
    return changed;
  }

  /** Notes the keys with which this process signed the statements in these commits. */
  noteSigner(commit: Oid, fingerprint: string): void {
    this.#cache.ownSigners.set(commit, fingerprint);
  }

  /**
   * Checks the statements that were too many to be checked when they came, as at a first start. Yields the packages that they are
   * about, some at a time; what was found out is shown by a `reassess` of them. One call at a time.
   */
  async *checkBacklog(): AsyncGenerator<ReadonlySet<string>> {
    // First: what was deleted must not count in between.
    yield* this.#publications.judgeRest(() => this.#state);
    while (this.#backlog.length > 0) {
      const slice = this.#backlog.slice(0, CHECK_BATCH_SIZE);
      await checkSignatures(slice, this.#trust, this.#cache.ownSigners);
      await this.#lookForMain(slice, this.mainHead);
      const isOld = this.#noteOldLedgerBy(slice);
      this.#raiseMarksOf(slice);
      const tags = slice.flatMap((item) => ('tip' in item ? item : []));
      const present = tags.map(({ ref, tip }) => ({ tip, candidate: this.#state.candidates.get(ref) }));
      await this.#publications.noteFound(
        this.#state,
        present.map(({ tip, candidate }) => (candidate?.tip === tip ? candidate : undefined)),
      );
      // Only now: after an error the next call goes on with the same ones. `apply` may have added others behind them.
      this.#backlog.splice(0, slice.length);
      yield new Set(isOld ? this.#state.namesByPackage.keys() : slice.map((item) => item.package));
    }
    if (!this.#awaitsLines) return;
    for (const head of this.#unreadHeads()) await this.#lines.read(head);
    this.#awaitsLines = false;
    yield new Set(this.#state.namesByPackage.keys());
  }

  /** Which repository this is does not change by what is pushed; an operator should know of it all the same. */
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
    return this.#backlog.length > 0 || this.#awaitsLines || this.#publications.hasRest;
  }

  /**
   * Evaluates revisions again after something changed that is no ref: trusted keys, adoptions, or what `check` found out. Returns
   * those that changed by it. Not while a call of `apply` runs.
   */
  async reassess(packages: Iterable<string> = [...this.#state.namesByPackage.keys()]): Promise<IndexChange[]> {
    for (const head of this.#trust.revokedHeads()) await this.#lines.read(head);
    const concerned = new Set(packages);
    // A key that is trusted since they were found.
    const found: Unchecked[] = [];
    await inSlices(this.#state.candidates.values(), ({ lifecycle, outOfBand, key, tip, ref }) => {
      if (lifecycle === 'Published' && outOfBand === undefined && concerned.has(key.package) && this.#awaitsMain(tip))
        found.push({ oid: tip.oid, package: key.package, tip, ref });
    });
    await this.#lookForMain(found, this.mainHead);
    const adoption = this.ref(adoptionRef(this.#layout));
    if (adoption !== undefined && this.#adoptionReadAt !== this.#trust.version)
      this.#state.rules.adoption = (await this.#readAdoption(adoption, new Set())).present;
    return runInSlices(this.#state.reassess(concerned));
  }

  /**
   * What is to be done when a head of the main branch is applied: the ledger follows it, but not to where it was rewritten, so that
   * what was on it before stays known.
   */
  async #mainMove(head: Oid | undefined): Promise<(() => void) | undefined> {
    const before = this.#trust.mainHead;
    if (head === undefined || head === before) return undefined;
    // The branch is there for the first time: the repository was empty, or is registered with another branch too.
    if (before === undefined) return () => this.#trust.noteMain(head);
    // Whether it comes back on the line would take a walk of the whole line at each publication.
    if (this.#leftBehind === before) return undefined;
    const isOnLine = (await this.#lines.find(new Set([before]), head)).has(before);
    return () => {
      if (isOnLine) this.#trust.noteMain(head);
      else this.#leftBehind = before;
    };
  }

  /** Whether a record shows that the ledger is older than the repository; noted so that no verdict counts until it is affirmed. */
  #noteOldLedger({ refs }: News): boolean {
    if (this.#isFirstLook) return false;
    return this.#noteOldLedgerAt(
      refs.some(({ name, after }) => {
        const meaning = after === undefined ? undefined : parseRef(this.#layout, name);
        if (after === undefined || meaning?.kind !== 'record') return false;
        const scope = { package: meaning.path, workspace: meaning.workspace };
        return this.#isBeyondLedger(this.#cache.records.get(after), scope);
      }),
    );
  }

  /** The same for records that were checked later. Those of a first look are all beyond the ledger. */
  #noteOldLedgerBy(checked: readonly Unchecked[]): boolean {
    if (this.#beganWithFirstLook) return false;
    return this.#noteOldLedgerAt(
      checked.some((item) => {
        const head = 'fact' in item ? item.fact.statement?.head : undefined;
        if (head === undefined || !('fact' in item)) return false;
        const isThere = this.#state.refs.get(recordRef(this.#layout, head.package, head.workspace)) === item.oid;
        return isThere && this.#isBeyondLedger(item.fact, head);
      }),
    );
  }

  #isBeyondLedger(fact: RecordFact | null | undefined, scope: Pick<StatementHead, 'package' | 'workspace'>): boolean {
    const statement = fact?.statement;
    if (statement === undefined || this.#trust.distrustOfRecord(statement, scope) !== undefined) return false;
    return this.#trust.isBeyondLedger(statement, fact?.isOwn);
  }

  #noteOldLedgerAt(isBeyond: boolean): boolean {
    if (isBeyond) {
      this.#trust.noteFirstLook();
      this.#isLedgerOld = true;
    }
    return isBeyond;
  }

  /** Records that are new and count raise the marks of the revisions at whose place they are. */
  #raiseMarks({ refs, adoption }: News): void {
    const marks: NewMark[] = [];
    const adopted = adoption?.present?.fact;
    const ofAdoption = adopted && this.#trust.markOfFound(adopted, ADOPTION_SCOPE, this.#isFirstLook);
    if (ofAdoption !== undefined) marks.push(ofAdoption);
    for (const { name, after } of refs) {
      const meaning = after === undefined ? undefined : parseRef(this.#layout, name);
      if (after === undefined || meaning?.kind !== 'record') continue;
      const statement = this.#cache.records.get(after)?.statement;
      const scope = { package: meaning.path, workspace: meaning.workspace };
      const mark = statement && this.#trust.markOfFound(statement, scope, this.#isFirstLook);
      if (mark !== undefined) marks.push(mark);
    }
    this.#trust.raise(marks, false);
  }

  /** Which publications count, where tags move or go, or carry what the ledger does not know. */
  async #notePublications({ refs, candidates }: News): Promise<void> {
    const after = new Map(refs.map(({ name, after }) => [name, after]));
    const refAfter = (ref: string) => (after.has(ref) ? after.get(ref) : this.#state.refs.get(ref));
    await this.#publications.noteReplaced(this.#state, candidates, refAfter);
    // What an earlier process has shown as it is was checked then.
    const isKnown = ([ref, candidate]: [string, Candidate | undefined]) =>
      this.#cache.shown.get(ref)?.oid === candidate?.refOid;
    const found = [...candidates].flatMap((entry) => (isKnown(entry) ? [] : entry[1]));
    await this.#publications.noteFound(this.#state, found);
  }

  /** The same for records that were checked later, and still are where they were. */
  #raiseMarksOf(checked: readonly Unchecked[]): void {
    const marks: NewMark[] = [];
    for (const item of checked) {
      const statement = 'fact' in item ? item.fact.statement : undefined;
      if (statement === undefined) continue;
      const { package: path, workspace } = statement.head;
      if (this.#state.refs.get(recordRef(this.#layout, path, workspace)) !== item.oid) continue;
      const mark = this.#trust.markOfFound(statement, { package: path, workspace }, false);
      if (mark !== undefined) marks.push(mark);
    }
    this.#trust.raise(marks, false);
  }

  /** Whether publications that were not seen before are on the main branch. A walk, which is for what a trusted key signed alone. */
  async #lookForMain(unchecked: readonly Unchecked[], head: Oid | undefined): Promise<void> {
    const tips = unchecked.flatMap((item) => ('tip' in item && this.#awaitsMain(item.tip) ? item.tip : []));
    if (tips.length === 0) return;
    const found = await this.#lines.find(new Set(tips.map(({ oid }) => oid)), head, this.#trust.mainHead);
    for (const tip of tips) tip.onMain = found.has(tip.oid);
  }

  #awaitsMain({ onMain, signer }: TipFact): boolean {
    return onMain === undefined && this.#trust.distrustOfSigner(signer) === undefined;
  }

  async #forgetUnused(): Promise<void> {
    if (this.#cache.passing > MAX_SPARE_FACTS) this.#cache.forgetPassing();
    const { size } = this.#cache;
    // What a file brings was in use when it was written.
    if (this.#factsInUse === 0) this.#factsInUse = size;
    if (size <= 2 * this.#factsInUse + MAX_SPARE_FACTS) return;
    this.#cache.keepOnly(await this.liveFacts());
    this.#factsInUse = this.#cache.size;
  }

  /** What `apply` would return; nothing is applied. Not while a call of `apply` runs. */
  async preview(changes: readonly RefChange[]): Promise<IndexChange[]> {
    const { news } = await this.#read(changes);
    const back = this.#state.inverse(news);
    const changed = runAtOnce(this.#state.takeIn(news));
    runAtOnce(this.#state.takeIn(back));
    return changed;
  }

  /** What changes come to, and statements of them that are still to be checked. */
  async #read(changes: readonly RefChange[]): Promise<{ readonly news: News; readonly late: readonly Unchecked[] }> {
    const candidates = new Map<string, Candidate | undefined>();
    const places: RefTarget[] = [];
    const known: [RefTarget, ShownFact][] = [];
    const packages = new Set<string>();
    const records = new Map<Oid, string>();
    const after = new Map<string, Oid | undefined>();
    const kptfiles = new Set<Oid>();
    const adopting = adoptionRef(this.#layout);
    await inSlices(changes, ({ name, after: oid }) => {
      const meaning = parseRef(this.#layout, name);
      if (meaning.kind === 'main' || name === adopting) after.set(name, oid);
      else if (meaning.kind === 'record') {
        after.set(name, oid);
        if (oid !== undefined) records.set(oid, meaning.package);
      } else if (meaning.kind === 'draft' || meaning.kind === 'proposed' || meaning.kind === 'published') {
        candidates.set(name, undefined);
        if (oid === undefined) return;
        const place = { ref: name, oid, path: packagePath(this.#layout, meaning.package), meaning };
        const shown = this.#cache.shown.get(name);
        if (shown?.oid !== oid) places.push(place);
        else {
          known.push([place, shown]);
          if (shown.tip.kptfileBlob !== undefined) kptfiles.add(shown.tip.kptfileBlob);
        }
      }
    });
    await this.#reader.commits(places);
    await this.#reader.kptfiles(kptfiles);
    const kptfileOf = (blob: Oid) => this.#cache.kptfiles.get(blob);
    await inSlices(known, ([place, shown]) =>
      candidates.set(place.ref, knownCandidate(this.#origin, place, shown, kptfileOf)),
    );
    await inSlices(places, (place) => {
      const tip = this.#reader.tip(place);
      if (tip !== undefined) candidates.set(place.ref, refCandidate(this.#origin, place, tip, kptfileOf));
    });
    const head = mainRef(this.#layout);
    const main = after.has(head) ? await this.#readMain(after.get(head)) : undefined;
    // Records can be there before the revisions that they speak about.
    const addRecord = (candidate: Candidate | undefined) => {
      if (candidate === undefined) return;
      const ref = recordRef(this.#layout, candidate.path, candidate.key.workspace);
      const oid = after.has(ref) ? after.get(ref) : this.#state.refs.get(ref);
      if (oid !== undefined) records.set(oid, candidate.key.package);
    };
    if (this.#state.hasRecords) {
      await inSlices(candidates.values(), addRecord);
      await inSlices(main?.candidates.values() ?? [], addRecord);
    }
    await this.#reader.records([...records.keys()]);
    const late = await this.#checkFew(candidates, records, main?.tip?.oid ?? this.mainHead);
    const adoption = after.has(adopting) ? await this.#readAdoption(after.get(adopting), packages) : undefined;
    return { news: { refs: changes, candidates, main, packages, records, adoption }, late };
  }

  /** Reads what was adopted; the packages that are concerned by it, before or now, are added to `packages`. */
  async #readAdoption(oid: Oid | undefined, packages: Set<string>): Promise<NonNullable<News['adoption']>> {
    this.#adoptionReadAt = this.#trust.version;
    const present = oid === undefined ? undefined : await readAdoption(this.#git, oid, this.#trust);
    for (const list of [this.#state.rules.adoption?.list, present?.list]) {
      await inSlices(list?.keys() ?? [], (ref) => {
        const meaning = parseRef(this.#layout, ref);
        if (meaning.kind === 'published') packages.add(meaning.package);
      });
    }
    return { present };
  }

  /** Checks the statements that came; returns those that are too many to wait for. */
  async #checkFew(
    candidates: ReadonlyMap<string, Candidate | undefined>,
    records: ReadonlyMap<Oid, string>,
    head: Oid | undefined,
  ): Promise<readonly Unchecked[]> {
    const unchecked: Unchecked[] = [];
    for (const candidate of candidates.values()) {
      if (candidate?.lifecycle !== 'Published' || candidate.outOfBand !== undefined) continue;
      const { tip, key } = candidate;
      if (tip.signer === undefined || this.#awaitsMain(tip))
        unchecked.push({ oid: tip.oid, package: key.package, tip, ref: candidate.ref });
    }
    for (const [oid, packageName] of records) {
      const fact = this.#cache.records.get(oid);
      if (fact?.signed !== undefined && fact.signer === undefined) unchecked.push({ oid, package: packageName, fact });
    }
    const isFew = unchecked.length <= MAX_CHECKED_AT_ONCE;
    const now = isFew ? unchecked : unchecked.filter(({ oid }) => this.#cache.ownSigners.has(oid));
    await checkSignatures(now, this.#trust, this.#cache.ownSigners);
    await this.#lookForMain(now, head);
    return isFew ? [] : unchecked.filter(({ oid }) => !this.#cache.ownSigners.has(oid));
  }

  /** The packages on the main branch that came, went or changed. */
  async #readMain(head: Oid | undefined): Promise<MainNews> {
    const { mainTip, placeholders } = this.#state;
    const earlier = mainTip === undefined ? this.#cache.main : undefined;
    const tip = earlier?.tip.oid === head ? earlier?.tip : await this.#readHead(head);
    const before = (earlier?.tip ?? mainTip)?.tree;
    const changed = await folderChanges(this.#reader, earlier?.folders ?? placeholders, before, tip?.tree);
    const folders = new Map<string, FolderFact | undefined>([...(earlier?.folders ?? []), ...changed]);
    await this.#reader.kptfiles(Array.from(folders.values(), (folder) => folder?.kptfileBlob ?? []).flat());
    const text = tip && headText(tip);
    const candidates = new Map<string, Candidate | undefined>();
    await inSlices(folders, ([path, folder]) => {
      const isThere = folder !== undefined && tip !== undefined && text !== undefined;
      const fact = folder && this.#cache.kptfiles.get(folder.kptfileBlob);
      candidates.set(path, isThere ? placeholderCandidate(this.#origin, folder, tip.oid, text, fact) : undefined);
    });
    return { tip, candidates };
  }

  async #readHead(head: Oid | undefined): Promise<TipFact | undefined> {
    if (head === undefined) return undefined;
    const place = { oid: head, path: this.#layout.directory };
    await this.#reader.commits([place]);
    return this.#reader.tip(place);
  }
}
