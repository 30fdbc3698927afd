import type { GitRepository, Oid, RefChange } from '../../git/git-repository.ts';
import { inSlices } from '../../git/in-slices.ts';
import { mainRef, packagePath, parseRef, type RepositoryLayout, recordRef } from '../layout.ts';
import { isPlaceholder, type PackageRevision } from '../package-revision.ts';
import {
  type Candidate,
  judgePlaceholder,
  type Origin,
  placeholderCandidate,
  type RevisionRef,
  refCandidate,
  winner,
} from './candidate.ts';
import type { FactCache, FolderFact } from './fact-cache.ts';
import { FactReader, type Place } from './fact-reader.ts';
import { folderChanges } from './folder-changes.ts';
import { IndexedRevision } from './indexed-revision.ts';
import { liveFacts } from './live-facts.ts';
import { PackageFolders } from './package-folders.ts';
import { runAtOnce, runInSlices } from './steps.ts';

export interface IndexChange {
  readonly before: PackageRevision | undefined;
  readonly after: PackageRevision | undefined;
}

/** What ref changes come to, read from Git before anything is changed. */
interface News {
  readonly refs: readonly RefChange[];
  /** What refs that show revisions show now. */
  readonly candidates: ReadonlyMap<string, Candidate | undefined>;
  /** Set if the main branch moved. */
  readonly main: MainNews | undefined;
  /** Packages that are concerned by other changes: of records and marks. */
  readonly packages: ReadonlySet<string>;
}

/** A ref that shows a revision, and where that lies. */
interface Shown extends Place {
  readonly ref: string;
  readonly meaning: RevisionRef;
}

/** What became of the packages on the main branch, by package; undefined for those that are gone. */
interface MainNews {
  readonly tree: Oid | undefined;
  readonly folders: ReadonlyMap<string, FolderFact | undefined>;
  readonly candidates: ReadonlyMap<string, Candidate | undefined>;
}

const NONE: readonly string[] = [];
/** More changes than these are taken in with pauses: a few milliseconds of work. */
const MOST_AT_ONCE = 512;
/** So many facts are kept in memory beyond what is in use, before the rest is dropped. */
const SPARE_FACTS = 2048;

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

  readonly #refs = new Map<string, Oid>();
  /** Revisions by the ref that shows them. */
  readonly #candidates = new Map<string, Candidate>();
  /** Packages on the main branch, by package. */
  readonly #placeholders = new Map<string, Candidate>();
  readonly #folders = new Map<string, FolderFact>();
  /** The tree that they are in. */
  #mainTree: Oid | undefined;
  /** Refs that show revisions of a package. */
  readonly #refsByPackage = new Map<string, Set<string>>();
  /** Those that claim an id; names that others gave can be spelled alike, and then one of them is shown. */
  readonly #byUid = new Map<string, readonly Candidate[]>();
  readonly #rows = new Map<string, PackageRevision>();
  readonly #namesByPackage = new Map<string, readonly string[]>();
  readonly #packages = new PackageFolders();
  /** Facts in use when they were counted last. */
  #factsInUse = 0;

  constructor(options: {
    repository: string;
    namespace: string;
    layout: RepositoryLayout;
    git: GitRepository;
    cache: FactCache;
  }) {
    this.#origin = options;
    this.#layout = options.layout;
    this.#cache = options.cache;
    this.#reader = new FactReader(options.git, options.cache);
  }

  get(name: string): PackageRevision | undefined {
    return this.#rows.get(name);
  }

  all(): IterableIterator<PackageRevision> {
    return this.#rows.values();
  }

  get packageCount(): number {
    return this.#namesByPackage.size;
  }

  /** All revisions of one package. */
  ofPackage(packageName: string): PackageRevision[] {
    const names = this.#namesByPackage.get(packageName) ?? [];
    return names.flatMap((name) => this.#rows.get(name) ?? []);
  }

  /** A package above or below the given path, if there is one. */
  nestedWith(packageName: string): string | undefined {
    return this.#packages.nestedWith(packageName);
  }

  /** What a ref points to, as far as the index knows. */
  ref(name: string): Oid | undefined {
    return this.#refs.get(name);
  }

  get mainHead(): Oid | undefined {
    return this.#refs.get(mainRef(this.#layout));
  }

  /** What a cache has to keep for a fast restart: the facts that the present revisions are made of, and no others. */
  liveFacts(): Promise<FactCache> {
    const candidates = [...this.#candidates.values(), ...this.#placeholders.values()];
    const recordOf = (uid: string) => this.#refs.get(recordRef(this.#layout, uid));
    const main = { head: this.mainHead, directory: this.#layout.directory, folders: this.#folders.values() };
    return liveFacts(this.#cache, candidates, recordOf, main);
  }

  /** What differs between the refs given and those that the index stands for. */
  diff(refs: readonly { name: string; oid: Oid }[]): RefChange[] {
    const changes: RefChange[] = [];
    let known = 0;
    for (const { name, oid } of refs) {
      const before = this.#refs.get(name);
      if (before !== undefined) known += 1;
      if (before !== oid) changes.push({ name, before, after: oid });
    }
    // This is asked every second or so, and hardly ever is one gone.
    if (known === this.#refs.size) return changes;
    const seen = new Set(refs.map(({ name }) => name));
    for (const [name, before] of this.#refs) {
      if (!seen.has(name)) changes.push({ name, before, after: undefined });
    }
    return changes;
  }

  /**
   * Takes ref changes in and returns the revisions that changed by them. If something cannot be read, nothing is taken in, and the
   * next look finds the same changes again. One call at a time. Few changes are taken in at once; while many are, as when a
   * repository is opened, others see some packages before and some after them.
   */
  async apply(changes: readonly RefChange[]): Promise<IndexChange[]> {
    const news = await this.#read(changes);
    const steps = this.#takeIn(news);
    const changed = changes.length > MOST_AT_ONCE ? await runInSlices(steps) : runAtOnce(steps);
    // What a file brings was in use when it was written.
    if (this.#factsInUse === 0) this.#factsInUse = this.#cache.size;
    if (this.#cache.size > 2 * this.#factsInUse + SPARE_FACTS) {
      this.#cache.keepOnly(await this.liveFacts());
      this.#factsInUse = this.#cache.size;
    }
    return changed;
  }

  /** What `apply` would return; nothing is taken in. Not while a call of `apply` runs. */
  async preview(changes: readonly RefChange[]): Promise<IndexChange[]> {
    const news = await this.#read(changes);
    const back = this.#inverse(news);
    const changed = runAtOnce(this.#takeIn(news));
    runAtOnce(this.#takeIn(back));
    return changed;
  }

  /** The news that bring back what is there now, where others are taken in first. */
  #inverse({ refs, candidates, main, packages }: News): News {
    const known = <Value>(keys: Iterable<string>, values: ReadonlyMap<string, Value>) =>
      new Map(Array.from(keys, (key) => [key, values.get(key)]));
    return {
      refs: refs.map(({ name, after }) => ({ name, before: after, after: this.#refs.get(name) })),
      candidates: known(candidates.keys(), this.#candidates),
      main: main && {
        tree: this.#mainTree,
        folders: known(main.folders.keys(), this.#folders),
        candidates: known(main.candidates.keys(), this.#placeholders),
      },
      packages,
    };
  }

  async #read(changes: readonly RefChange[]): Promise<News> {
    const candidates = new Map<string, Candidate | undefined>();
    const places: Shown[] = [];
    const packages = new Set<string>();
    const records = new Set<Oid>();
    const after = new Map<string, Oid | undefined>();
    await inSlices(changes, ({ name, after: oid }) => {
      after.set(name, oid);
      const meaning = parseRef(this.#layout, name);
      if (meaning.kind === 'record') {
        for (const { key } of this.#byUid.get(meaning.uid) ?? []) packages.add(key.package);
        if (oid !== undefined) records.add(oid);
      } else if (meaning.kind === 'deletionProposed') packages.add(meaning.package);
      else if (meaning.kind === 'draft' || meaning.kind === 'proposed' || meaning.kind === 'published') {
        candidates.set(name, undefined);
        const path = packagePath(this.#layout, meaning.package);
        if (oid !== undefined) places.push({ ref: name, oid, path, meaning });
      }
    });
    await this.#reader.commits(places);
    const kptfileOf = (blob: Oid) => this.#cache.kptfiles.get(blob);
    await inSlices(places, (place) => {
      const info = this.#reader.commit(place);
      if (info !== undefined) candidates.set(place.ref, refCandidate(this.#origin, place, info, kptfileOf));
    });
    const head = mainRef(this.#layout);
    const main = after.has(head) ? await this.#readMain(after.get(head)) : undefined;
    // Records can be there before the revisions that they speak about.
    const addRecord = (candidate: Candidate | undefined) => {
      if (candidate === undefined) return;
      const ref = recordRef(this.#layout, candidate.uid);
      const oid = after.has(ref) ? after.get(ref) : this.#refs.get(ref);
      if (oid !== undefined) records.add(oid);
    };
    await inSlices(candidates.values(), addRecord);
    await inSlices(main?.candidates.values() ?? [], addRecord);
    await this.#reader.records([...records]);
    return { refs: changes, candidates, main, packages };
  }

  /** The packages on the main branch that came, went or changed. */
  async #readMain(head: Oid | undefined): Promise<MainNews> {
    const { directory } = this.#layout;
    const place = head === undefined ? undefined : { oid: head, path: directory };
    if (place !== undefined) await this.#reader.commits([place]);
    const info = place === undefined ? undefined : this.#reader.commit(place);
    const tree = info === undefined ? undefined : await this.#reader.treeOf(info.oid, directory);
    const folders = await folderChanges(this.#reader, this.#folders, this.#mainTree, tree);
    await this.#reader.kptfiles(Array.from(folders.values(), (folder) => folder?.kptfileBlob ?? []).flat());
    const candidates = new Map<string, Candidate | undefined>();
    await inSlices(folders, ([path, folder]) => {
      const gone = folder === undefined || info === undefined;
      const fact = gone ? undefined : this.#cache.kptfiles.get(folder.kptfileBlob);
      candidates.set(path, gone ? undefined : placeholderCandidate(this.#origin, folder, info, fact));
    });
    return { tree, folders, candidates };
  }

  /** From here on nothing is read. Whoever runs it to its end without a pause lets nobody see half of it. */
  *#takeIn({ refs, candidates, main, packages }: News): Generator<void, IndexChange[]> {
    const touched = new Set(packages);
    for (const { name, after } of refs) {
      if (after === undefined) this.#refs.delete(name);
      else this.#refs.set(name, after);
      yield;
    }
    for (const [ref, candidate] of candidates) {
      this.#replace(this.#candidates.get(ref), candidate, touched);
      if (candidate === undefined) this.#candidates.delete(ref);
      else this.#candidates.set(ref, candidate);
      yield;
    }
    if (main !== undefined) {
      this.#mainTree = main.tree;
      for (const [path, folder] of main.folders) {
        if (folder === undefined) this.#folders.delete(path);
        else this.#folders.set(path, folder);
      }
      for (const [packageName, candidate] of main.candidates) {
        this.#replace(this.#placeholders.get(packageName), candidate, touched);
        if (candidate === undefined) this.#placeholders.delete(packageName);
        else this.#placeholders.set(packageName, candidate);
        yield;
      }
    }
    return yield* this.#assemble(touched);
  }

  /** One candidate takes the place of another; all packages that claim an id of theirs are touched. */
  #replace(before: Candidate | undefined, after: Candidate | undefined, touched: Set<string>): void {
    if (before !== undefined) {
      const others = (this.#byUid.get(before.uid) ?? []).filter((other) => other !== before);
      for (const { key } of [before, ...others]) touched.add(key.package);
      if (others.length > 0) this.#byUid.set(before.uid, others);
      else this.#byUid.delete(before.uid);
      if (!isPlaceholder(before)) dropFrom(this.#refsByPackage, before.key.package, before.ref);
    }
    if (after !== undefined) {
      const claimants = [...(this.#byUid.get(after.uid) ?? []), after];
      for (const { key } of claimants) touched.add(key.package);
      this.#byUid.set(after.uid, claimants);
      if (!isPlaceholder(after)) addTo(this.#refsByPackage, after.key.package, after.ref);
    }
  }

  /** Puts the revisions of packages together and says which of them changed. */
  *#assemble(packages: ReadonlySet<string>): Generator<void, IndexChange[]> {
    const changes: IndexChange[] = [];
    const shown = new Map<string, Candidate[]>();
    for (const packageName of packages) {
      const candidates = this.#shown(packageName);
      shown.set(packageName, candidates);
      const names = new Set(candidates.map(({ name }) => name));
      for (const name of this.#namesByPackage.get(packageName) ?? []) {
        const row = this.#rows.get(name);
        if (row === undefined || names.has(name)) continue;
        this.#rows.delete(name);
        changes.push({ before: row, after: undefined });
      }
      if (names.size > 0) this.#namesByPackage.set(packageName, [...names]);
      else this.#namesByPackage.delete(packageName);
      if (names.size > 0) this.#packages.add(packageName);
      else this.#packages.delete(packageName);
      yield;
    }
    for (const candidates of shown.values()) {
      const newest = newestOf(candidates);
      for (const candidate of candidates) {
        const row = this.#complete(candidate, newest);
        const known = this.#rows.get(row.name);
        if (known !== undefined && known.etag === row.etag) continue;
        this.#rows.set(row.name, row);
        changes.push({ before: known, after: row });
      }
      yield;
    }
    return changes;
  }

  #shown(packageName: string): Candidate[] {
    const refs = this.#refsByPackage.get(packageName) ?? [];
    const placeholder = this.#placeholders.get(packageName);
    const candidates = Array.from(refs, (ref) => this.#candidates.get(ref) ?? []).flat();
    if (placeholder !== undefined) candidates.push(placeholder);
    return candidates.filter((candidate) => winner(this.#byUid.get(candidate.uid) ?? []) === candidate);
  }

  #complete(candidate: Candidate, newest: Candidate | undefined): PackageRevision {
    const latest = candidate === newest;
    const recordOid = this.#refs.get(recordRef(this.#layout, candidate.uid));
    const record = (recordOid === undefined ? undefined : this.#cache.records.get(recordOid)) ?? undefined;
    const marked = candidate.lifecycle === 'Published' && this.#isMarked(candidate);
    const lifecycle = marked ? 'DeletionProposed' : candidate.lifecycle;
    const outOfBand = isPlaceholder(candidate) ? judgePlaceholder(candidate, newest) : candidate.outOfBand;
    const claims = this.#byUid.get(candidate.uid) ?? [];
    const hides = claims.length < 2 ? NONE : claims.flatMap((other) => (other === candidate ? [] : other.ref)).sort();
    return new IndexedRevision(candidate, { lifecycle, latest, record, recordOid, outOfBand, hides });
  }

  #isMarked(candidate: Candidate): boolean {
    const version = candidate.revision > 0 ? `v${candidate.revision}` : candidate.key.workspace;
    const mark = this.#refs.get(`refs/heads/deletionProposed/${candidate.path}/${version}`);
    // A mark that is left over from an earlier revision of this number says nothing about this one.
    return candidate.revision > 0 ? mark === candidate.commit : mark !== undefined;
  }
}

/** The highest published revision. */
function newestOf(candidates: readonly Candidate[]): Candidate | undefined {
  let newest: Candidate | undefined;
  for (const candidate of candidates) if (candidate.revision > (newest?.revision ?? 0)) newest = candidate;
  return newest;
}

function addTo(sets: Map<string, Set<string>>, key: string, value: string): void {
  const known = sets.get(key);
  if (known === undefined) sets.set(key, new Set([value]));
  else known.add(value);
}

function dropFrom(sets: Map<string, Set<string>>, key: string, value: string): void {
  const known = sets.get(key);
  known?.delete(value);
  if (known?.size === 0) sets.delete(key);
}
