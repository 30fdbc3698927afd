import { inSlices } from '../../foundation/concurrency/in-slices.ts';
import type { GitRepository, Oid, RefChange } from '../../git/git-repository.ts';
import {
  adoptionRef,
  mainRef,
  packagePath,
  parseRef,
  type RepositoryLayout,
  recordRef,
} from '../model/identity/layout.ts';
import { readAdoption } from '../trust/adoption.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';
import {
  type Candidate,
  headText,
  knownCandidate,
  type Origin,
  placeholderCandidate,
  type RefTarget,
  refCandidate,
} from './facts/candidate.ts';
import type { FactCache, FolderFact, RefFact } from './facts/fact-cache.ts';
import { FactReader, inBatches } from './facts/fact-reader.ts';
import { folderChanges } from './facts/folder-changes.ts';
import { KptfileFact } from './facts/kptfile-fact.ts';
import type { MainLines } from './facts/main-lines.ts';
import type { TipFact } from './facts/tip-fact.ts';
import type { IndexDelta, MainDelta } from './state/index-delta.ts';
import type { IndexState } from './state/index-state.ts';
import { carrierOf, checkSignatures, MAX_CHECKED_AT_ONCE, type Unchecked } from './trust/signature-checks.ts';

export interface DeltaReaderOptions {
  readonly origin: Origin;
  readonly layout: RepositoryLayout;
  readonly git: GitRepository;
  readonly cache: FactCache;
  readonly trust: RepositoryTrust;
  readonly lines: MainLines;
}

/** The result of reading ref changes. */
export interface ReadDelta {
  readonly unchecked: IndexDelta;
  /** Statements that are too many to be checked at once. */
  readonly backlog: readonly Unchecked[];
}

/** Reads the effects of ref changes from Git, before the index changes. */
export class DeltaReader {
  readonly #origin: Origin;
  readonly #layout: RepositoryLayout;
  readonly #git: GitRepository;
  readonly #cache: FactCache;
  readonly #trust: RepositoryTrust;
  readonly #lines: MainLines;
  readonly #reader: FactReader;
  /** Version of the trusted keys at which the adoption was read. */
  #adoptionReadAt = -1;

  constructor({ origin, layout, git, cache, trust, lines }: DeltaReaderOptions) {
    this.#origin = origin;
    this.#layout = layout;
    this.#git = git;
    this.#cache = cache;
    this.#trust = trust;
    this.#lines = lines;
    this.#reader = new FactReader(git, cache);
  }

  /** True if the adoption was read with the keys that are trusted now. */
  get isAdoptionCurrent(): boolean {
    return this.#adoptionReadAt === this.#trust.version;
  }

  /** Reads the effects of changes, and the statements that must be checked. Changes nothing. */
  async read(state: IndexState, changes: readonly RefChange[]): Promise<ReadDelta> {
    const candidates = new Map<string, Candidate | undefined>();
    const places: RefTarget[] = [];
    const known: [RefTarget, RefFact][] = [];
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
        const shown = this.#cache.refFacts.get(name);
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
    const unread: RefTarget[] = [];
    await inSlices(places, (place) => {
      const tip = this.#reader.tip(place);
      if (tip !== undefined) candidates.set(place.ref, refCandidate(this.#origin, place, tip, kptfileOf));
      if (tip !== undefined && tip.kptfileBlob === undefined && place.meaning.kind !== 'published') unread.push(place);
    });
    await inBatches(unread, (batch) => this.#explain(batch, candidates));
    const head = mainRef(this.#layout);
    const main = after.has(head) ? await this.#readMain(state, after.get(head)) : undefined;
    // Records can be there before the revisions that they speak about.
    const addRecord = (candidate: Candidate | undefined) => {
      if (candidate === undefined) return;
      const ref = recordRef(this.#layout, candidate.path, candidate.key.workspace);
      const oid = after.has(ref) ? after.get(ref) : state.refs.get(ref);
      if (oid !== undefined) records.set(oid, candidate.key.package);
    };
    if (state.hasRecords) {
      await inSlices(candidates.values(), addRecord);
      await inSlices(main?.candidates.values() ?? [], addRecord);
    }
    await this.#reader.records([...records.keys()]);
    const backlog = await this.#checkFew(candidates, records, main?.tip?.oid ?? state.refs.get(mainRef(this.#layout)));
    const adoption = after.has(adopting) ? await this.readAdoption(state, after.get(adopting), packages) : undefined;
    return { unchecked: { refs: changes, candidates, main, packages, records, adoption }, backlog };
  }

  /** A branch without a readable Kptfile may have malformed trees: users see that as the reason. */
  async #explain(places: readonly RefTarget[], candidates: Map<string, Candidate | undefined>): Promise<void> {
    for (const place of places) {
      const flaw = await this.#reader.flawOf(place);
      const candidate = candidates.get(place.ref);
      if (flaw === undefined || candidate === undefined) continue;
      candidates.set(place.ref, { ...candidate, fact: KptfileFact.ofProblem(flaw) });
    }
  }

  /** Reads what was adopted; the packages that are concerned by it, before or now, are added to `packages`. */
  async readAdoption(
    state: IndexState,
    oid: Oid | undefined,
    packages: Set<string>,
  ): Promise<NonNullable<IndexDelta['adoption']>> {
    this.#adoptionReadAt = this.#trust.version;
    const present = oid === undefined ? undefined : await readAdoption(this.#git, oid, this.#trust);
    for (const list of [state.rules.adoption?.list, present?.list]) {
      await inSlices(list?.keys() ?? [], (ref) => {
        const meaning = parseRef(this.#layout, ref);
        if (meaning.kind === 'published') packages.add(meaning.package);
      });
    }
    return { present };
  }

  /** Checks new statements; returns the remaining ones if there are too many to wait for. */
  async #checkFew(
    candidates: ReadonlyMap<string, Candidate | undefined>,
    records: ReadonlyMap<Oid, string>,
    head: Oid | undefined,
  ): Promise<readonly Unchecked[]> {
    const unchecked: Unchecked[] = [];
    for (const candidate of candidates.values()) {
      if (candidate?.lifecycle !== 'Published' || candidate.outOfBand !== undefined) continue;
      const { tip, key } = candidate;
      if (tip.signer === undefined || this.awaitsMain(tip))
        unchecked.push({ oid: tip.oid, package: key.package, tip, ref: candidate.ref });
    }
    for (const [oid, packageName] of records) {
      const fact = this.#cache.records.get(oid);
      if (fact?.signed !== undefined && fact.signer === undefined) unchecked.push({ oid, package: packageName, fact });
    }
    const isFew = unchecked.length <= MAX_CHECKED_AT_ONCE;
    const isOwn = (item: Unchecked) => this.#cache.own.signerOf(carrierOf(item)) !== undefined;
    const now = isFew ? unchecked : unchecked.filter(isOwn);
    await checkSignatures(now, this.#trust, this.#cache.own);
    await this.lookForMain(now, head);
    return isFew ? [] : unchecked.filter((item) => !isOwn(item));
  }

  /** Returns the packages on the main branch that were added, changed or removed. */
  async #readMain(state: IndexState, head: Oid | undefined): Promise<MainDelta> {
    const { mainTip, placeholders } = state;
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

  /**
   * Determines whether new publications are on the main branch. This needs a walk, so it is done only for those that a trusted key
   * signed.
   */
  async lookForMain(unchecked: readonly Unchecked[], head: Oid | undefined): Promise<void> {
    const tips = unchecked.flatMap((item) => ('tip' in item && this.awaitsMain(item.tip) ? item.tip : []));
    if (tips.length === 0) return;
    const found = await this.#lines.find(new Set(tips.map(({ oid }) => oid)), head, this.#trust.mainHead);
    for (const tip of tips) tip.onMain = found.has(tip.oid);
  }

  awaitsMain({ onMain, signer }: TipFact): boolean {
    return onMain === undefined && this.#trust.distrustOfSigner(signer) === undefined;
  }
}
