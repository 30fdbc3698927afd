import { inSlices } from '../../../foundation/concurrency/in-slices.ts';
import type { Oid } from '../../../git/git-repository.ts';
import { DELETION_PROPOSED, recordRef } from '../../model/identity/layout.ts';
import { isPlaceholder, type OutOfBand, type PackageRevision } from '../../model/revision/package-revision.ts';
import { markedPublications, publicationScope } from '../../trust/ledger/publication-mark.ts';
import { deletedContentScope, type StatementScope } from '../../trust/ledger/trust-ledger.ts';
import { type Candidate, placeholderFlaw } from '../facts/candidate.ts';
import { LazyJson } from '../facts/lazy-json.ts';
import type { RecordFact } from '../facts/record-fact.ts';
import type { TipFact } from '../facts/tip-fact.ts';
import { TrustRules, type TrustView } from '../trust/trust-rules.ts';
import { addTo, CandidateTable, copyEntries } from './candidate-table.ts';
import { ChangedPackages } from './changed-packages.ts';
import { type CandidateLookup, dependentsOfMark, dependentsOfRef } from './dependents.ts';
import type { IndexChange, IndexDelta } from './index-delta.ts';
import { IndexedRevision } from './indexed-revision.ts';
import { PackageFolders } from './package-folders.ts';
import { TagNames } from './tag-names.ts';

/** The parts of the environment that a state depends on. */
interface StateView extends TrustView {
  readonly repository: string;
  readonly namespace: string;
  /** The content of a record commit, as far as it was read. */
  recordAt(oid: Oid): RecordFact | undefined;
}

const NONE: readonly string[] = [];

/** The refs of a repository and the revisions derived from them. */
export class IndexState {
  readonly refs = new Map<string, Oid>();
  readonly rows = new Map<string, PackageRevision>();
  readonly namesByPackage = new Map<string, Set<string>>();
  readonly packages = new PackageFolders();
  readonly tagNames: TagNames;
  readonly rules: TrustRules;
  readonly changed: ChangedPackages;
  readonly #view: StateView;
  readonly #candidates = new CandidateTable();
  /** The head of the main branch. */
  #mainTip: TipFact | undefined;
  /** Increases with each change that may affect every row, such as one of trusted keys. */
  #epoch = 0;
  /** Epoch in which all rows of a package were last evaluated; rows without later changes stay as they are. */
  readonly #epochs = new Map<string, number>();
  #keysVersion: number | undefined;
  #repositoryId: string | undefined;
  /** Numbers of refs by kind; most repositories have none of one kind, so that no look-up is needed. */
  #records = 0;
  #marks = 0;

  constructor(view: StateView, earlier?: IndexState) {
    this.#view = view;
    this.rules = new TrustRules(view, earlier?.rules);
    this.changed = new ChangedPackages(earlier?.changed);
    this.tagNames = new TagNames(this.refs, earlier?.tagNames);
  }

  /** Returns a copy that can be changed while readers use this one. */
  async copy(): Promise<IndexState> {
    const copy = new IndexState(this.#view, this);
    copy.#mainTip = this.#mainTip;
    [copy.#records, copy.#marks] = [this.#records, this.#marks];
    copy.#epoch = this.#epoch;
    copy.#keysVersion = this.#keysVersion;
    copy.#repositoryId = this.#repositoryId;
    await this.#candidates.copyTo(copy.#candidates);
    await copyEntries(this.#epochs, copy.#epochs);
    await copyEntries(this.refs, copy.refs);
    await copyEntries(this.rows, copy.rows);
    await copyEntries(this.namesByPackage, copy.namesByPackage, (names) => new Set(names));
    await inSlices(this.namesByPackage.keys(), (name) => copy.packages.add(name));
    return copy;
  }

  get hasRecords(): boolean {
    return this.#records > 0;
  }

  /** The head of the main branch; undefined if it was not read. */
  get mainTip(): TipFact | undefined {
    return this.#mainTip;
  }

  /** Revisions by the ref that shows them. */
  get candidates(): ReadonlyMap<string, Candidate> {
    return this.#candidates.byRef;
  }

  /** Packages on the main branch, by package. */
  get placeholders(): ReadonlyMap<string, Candidate> {
    return this.#candidates.placeholders;
  }

  /** The delta that restores the present state after another one was applied. */
  inverse({ refs, candidates, main, packages, records, adoption }: IndexDelta): IndexDelta {
    const known = <Value>(keys: Iterable<string>, values: ReadonlyMap<string, Value>) =>
      new Map(Array.from(keys, (key) => [key, values.get(key)]));
    return {
      refs: refs.map(({ name, after }) => ({ name, before: after, after: this.refs.get(name) })),
      candidates: known(candidates.keys(), this.candidates),
      main: main && {
        tip: this.#mainTip,
        candidates: known(main.candidates.keys(), this.placeholders),
      },
      ...{ packages, records },
      adoption: adoption && { present: this.rules.adoption },
    };
  }

  /** All rows may have changed: each package is evaluated as a whole when it is concerned next. */
  invalidate(): void {
    this.#epoch += 1;
  }

  /**
   * Applies a delta without reading. A caller that runs it to its end without yielding exposes no intermediate state. `raised` are
   * marks that were raised since the last call.
   */
  *apply(
    { refs, candidates, main, packages, adoption }: IndexDelta,
    raised: Iterable<StatementScope> = [],
  ): Generator<void, IndexChange[]> {
    const touched = new Set<string>();
    if (adoption !== undefined) this.rules.adoption = adoption.present;
    for (const { name, after } of refs) {
      this.#setRef(name, after);
      yield;
    }
    for (const [ref, candidate] of candidates) {
      this.#candidates.setAtRef(ref, candidate, touched);
      yield;
    }
    if (main !== undefined) {
      this.#mainTip = main.tip;
      for (const [packageName, candidate] of main.candidates) {
        this.#candidates.setPlaceholder(packageName, candidate, touched);
        yield;
      }
    }
    const place = this.#place();
    for (const { name } of refs) {
      for (const uid of dependentsOfRef(place, name)) touched.add(uid);
      yield;
    }
    for (const scope of raised) {
      if (scope.repository !== this.#view.trust.repository) continue;
      const dependents = dependentsOfMark(place, scope);
      if (dependents === undefined) this.invalidate();
      for (const uid of dependents ?? []) touched.add(uid);
      yield;
    }
    return yield* this.#assemble(touched, packages);
  }

  #place(): CandidateLookup {
    const { repository, namespace, layout } = this.#view;
    return {
      ...{ repository, namespace, layout },
      tag: (ref) => this.candidates.get(ref),
      placeholder: (packageName) => this.placeholders.get(packageName),
    };
  }

  #setRef(name: string, oid: Oid | undefined): void {
    const more = Number(oid !== undefined) - Number(this.refs.has(name));
    if (more === 1 || more === -1) this.tagNames.note(name, more);
    if (more !== 0 && name.startsWith(this.#view.layout.recordPrefix)) this.#records += more;
    else if (more !== 0 && name.startsWith(DELETION_PROPOSED)) this.#marks += more;
    if (oid === undefined) this.refs.delete(name);
    else this.refs.set(name, oid);
  }

  /** Evaluates revisions again after a change that is not one of refs: keys, adoptions, or results of signature checks. */
  reassess(packages: ReadonlySet<string>): Generator<void, IndexChange[]> {
    return this.#assemble(new Set(), packages);
  }

  /**
   * Puts the revisions with the ids together, and all revisions of the packages, and returns which of them changed. A revision depends on
   * its refs, on what else claims its id, on the marks of its statements, on the highest revision of its package, and on what makes an
   * epoch. The work follows what changed of these: a package may have thousands of publications.
   */
  *#assemble(touched: ReadonlySet<string>, whole: Iterable<string>): Generator<void, IndexChange[]> {
    this.#noteEpoch();
    const changes: IndexChange[] = [];
    const uids = new Set(touched);
    const packages = new Set(whole);
    for (const uid of touched) {
      for (const { key } of this.#candidates.candidatesOf(uid))
        if (this.#epochs.get(key.package) !== this.#epoch) packages.add(key.package);
      yield;
    }
    for (const packageName of packages) {
      for (const uid of this.#candidates.uidsOf(packageName)) uids.add(uid);
      this.#epochs.set(packageName, this.#epoch);
      yield;
    }
    const counts = (candidate: Candidate) => this.rules.isInBand(candidate);
    const concerned = new Set<string>();
    for (const uid of uids) {
      const { before, after } = this.#candidates.choose(uid, counts);
      for (const candidate of [before, after]) if (candidate !== undefined) concerned.add(candidate.key.package);
      if (before !== undefined && (before.name !== after?.name || before.key.package !== after.key.package))
        changes.push(...this.#drop(before));
      yield;
    }
    for (const uid of [...uids]) {
      for (const other of this.#candidates.followNewest(uid)) uids.add(other);
      yield;
    }
    for (const packageName of concerned) {
      for (const uid of this.#candidates.expectNewest(packageName)) uids.add(uid);
      yield;
    }
    for (const uid of uids) {
      const candidate = this.#candidates.chosen(uid);
      if (candidate !== undefined) changes.push(...this.#put(candidate));
      yield;
    }
    return changes;
  }

  /** Notes changes that every row may depend on. */
  #noteEpoch(): void {
    const { version, repository } = this.#view.trust;
    const isAdoptionOther = this.rules.followAdoption();
    if (this.#keysVersion !== version || this.#repositoryId !== repository || isAdoptionOther) this.invalidate();
    this.#keysVersion = version;
    this.#repositoryId = repository;
  }

  /** The row of a revision that is shown no more, or under another name. */
  #drop({ name, key }: Candidate): IndexChange[] {
    const names = this.namesByPackage.get(key.package);
    names?.delete(name);
    if (names?.size === 0) {
      this.namesByPackage.delete(key.package);
      this.#epochs.delete(key.package);
      this.packages.delete(key.package);
    }
    const row = this.rows.get(name);
    this.rows.delete(name);
    this.changed.note(key.package);
    return row === undefined ? [] : [{ before: row, after: undefined }];
  }

  #put(candidate: Candidate): IndexChange[] {
    const packageName = candidate.key.package;
    const row = this.#complete(candidate, this.#candidates.newestOf(packageName));
    const known = this.rows.get(row.name);
    if (known !== undefined && known.etag === row.etag) return [];
    this.rows.set(row.name, row);
    this.changed.note(packageName);
    addTo(this.namesByPackage, packageName, row.name);
    this.packages.add(packageName);
    return [{ before: known, after: row }];
  }

  #complete(candidate: Candidate, newest: Candidate | undefined): PackageRevision {
    const latest = candidate === newest;
    const { layout, recordAt } = this.#view;
    const { path, key } = candidate;
    const recordOid = !this.hasRecords ? undefined : this.refs.get(recordRef(layout, path, key.workspace));
    const fact = recordOid === undefined ? undefined : recordAt(recordOid);
    const trusted = this.rules.recordOf(candidate, recordOid, fact);
    const marked = candidate.lifecycle === 'Published' && this.#isMarked(candidate);
    const lifecycle = marked ? 'DeletionProposed' : candidate.lifecycle;
    const fault = isPlaceholder(candidate)
      ? this.#placeholderFlaw(candidate, newest)
      : this.rules.distrustOfTag(candidate);
    // Adoption makes up for what is wrong with a statement. What was deleted or replaced since does not count by it.
    const isListed = this.rules.isListed(candidate);
    const flaw = isListed ? this.rules.replacementOf(candidate) : fault;
    const outOfBand = flaw !== undefined ? LazyJson.of(flaw) : isListed ? undefined : candidate.outOfBand;
    const claims = this.#candidates.candidatesOf(candidate.uid);
    const hides = claims.length < 2 ? NONE : claims.flatMap((other) => (other === candidate ? [] : other.ref)).sort();
    return new IndexedRevision(candidate, { lifecycle, latest, recordOid, outOfBand, hides, ...trusted });
  }

  #placeholderFlaw(placeholder: Candidate, newest: Candidate | undefined): OutOfBand | undefined {
    const flaw = placeholderFlaw(placeholder, newest);
    return flaw !== undefined && this.#isLeftByDeletion(placeholder, newest) ? undefined : flaw;
  }

  /**
   * True for the content that the last deletion through Sluice left on the main branch, if what it deleted had a higher number than `newest`, and
   * `newest` was not published since: its number can be lower where other tags had kept it from being used.
   */
  #isLeftByDeletion({ path, tip }: Candidate, newest: Candidate | undefined): boolean {
    const { trust } = this.#view;
    const left = trust.mark(deletedContentScope(path));
    if (left === undefined || left.digest !== tip.tree) return false;
    if (newest === undefined) return true;
    const last = trust.mark(publicationScope(path, `v${newest.revision}`));
    if (last !== undefined && last.order > left.order) return false;
    for (const { isDeleted } of markedPublications(trust, path, newest.revision)) if (isDeleted) return true;
    return false;
  }

  #isMarked(candidate: Candidate): boolean {
    if (this.#marks === 0) return false;
    const version = candidate.revision > 0 ? `v${candidate.revision}` : candidate.key.workspace;
    const mark = this.refs.get(`${DELETION_PROPOSED}${candidate.path}/${version}`);
    // A mark of an earlier revision with this number does not apply to this one.
    return candidate.revision > 0 ? mark === candidate.commit : mark !== undefined;
  }
}
