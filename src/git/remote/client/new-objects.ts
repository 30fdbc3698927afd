import { inSlices } from '../../../foundation/concurrency/in-slices.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { GitObject, Oid } from '../../git-repository.ts';
import { parseCommit } from '../../objects/commit-codec.ts';
import type { PackedObject } from '../../objects/pack/pack-writer.ts';
import { treeWindow } from '../../objects/pack/tree-window.ts';
import { targetOfTag } from '../../objects/tag-codec.ts';
import { parseTree } from '../../objects/tree-codec.ts';
import type { LocalRepository } from './local-repository.ts';

/** Above these, git makes the pack, as a stream. */
const MAX_OBJECTS = 10_000;
const MAX_BYTES = 32 * 1024 * 1024;
const MAX_COMMITS = 1_000;
/** Smaller files hardly shrink as a delta. */
const MIN_DELTA_BYTES = 4096;

type ObjectReader = Pick<LocalRepository, 'readObjects' | 'statObjects'>;

/** Versions of an entry at one path: the new one, and those before it. */
interface Pair {
  readonly oid: Oid;
  readonly bases: readonly Oid[];
}

interface CommitFacts {
  readonly oid: Oid;
  readonly tree: Oid;
  readonly parents: readonly Oid[];
}

/**
 * Collects the objects that a remote lacks for some new tips: all between the tips and commits that it has, if they differ from the
 * objects at the same path in the previous commits. Undefined if there are too many for memory.
 *
 * The base of an object is always an object that the remote has or that was collected before, so that no two ever have each other
 * as base.
 */
export async function collectNewObjects(
  reader: ObjectReader,
  tips: readonly Oid[],
  isKnown: (oid: Oid) => boolean,
): Promise<PackedObject[] | undefined> {
  return new Collector(reader, isKnown).collect(tips);
}

class LimitReached extends Error {}

class Collector {
  readonly #reader: ObjectReader;
  readonly #isKnown: (oid: Oid) => boolean;
  readonly #collected = new Map<Oid, PackedObject>();
  /** Objects below commits that the remote has. */
  readonly #there = new Set<Oid>();
  /** Trees of which all entries are in `#there`. */
  readonly #marked = new Set<Oid>();
  #bytes = 0;

  constructor(reader: ObjectReader, isKnown: (oid: Oid) => boolean) {
    this.#reader = reader;
    this.#isKnown = isKnown;
  }

  async collect(tips: readonly Oid[]): Promise<PackedObject[] | undefined> {
    try {
      const { commits, others } = await this.#commits(tips);
      await this.#trees(await this.#roots(commits), others);
      return [...this.#collected.values()];
    } catch (error) {
      if (error instanceof LimitReached) return undefined;
      throw error;
    }
  }

  /** Collects the new commits and tags. Returns the commits, newest first, and what tips or tags name beside commits. */
  async #commits(tips: readonly Oid[]): Promise<{ commits: CommitFacts[]; others: Pair[] }> {
    const commits: CommitFacts[] = [];
    const others: Pair[] = [];
    const seen = new Set<Oid>();
    for (let level = tips; level.length > 0; ) {
      const fresh = [...new Set(level)].filter((oid) => !seen.has(oid) && !this.#isKnown(oid));
      const next: Oid[] = [];
      for (const [oid, object] of await this.#read(fresh)) {
        seen.add(oid);
        if (seen.size > MAX_COMMITS) throw new LimitReached();
        if (object.type === 'commit') {
          const { tree, parents } = parseCommit(object.data, oid);
          commits.push({ oid, tree, parents });
          next.push(...parents);
          this.#take(object);
        } else if (object.type === 'tag') {
          next.push(targetOf(object));
          this.#take(object);
        } else others.push({ oid, bases: [] });
      }
      level = next;
    }
    return { commits, others };
  }

  /** The root trees of the new commits, the oldest first, each with those of its parents. */
  async #roots(commits: readonly CommitFacts[]): Promise<Pair[]> {
    const trees = new Map(commits.map(({ oid, tree }) => [oid, tree]));
    const known = [...new Set(commits.flatMap(({ parents }) => parents))].filter((oid) => !trees.has(oid));
    for (const [oid, object] of await this.#read(known)) {
      const { tree } = parseCommit(object.data, oid);
      trees.set(oid, tree);
      this.#there.add(tree);
    }
    const pairs = commits.map(({ tree, parents }) => ({
      oid: tree,
      bases: parents.map((parent) => trees.get(parent)).filter((base) => base !== undefined),
    }));
    return pairs.reverse();
  }

  /** Collects what differs, one level of folders after the other. */
  async #trees(roots: readonly Pair[], others: readonly Pair[]): Promise<void> {
    const files: Pair[] = [];
    for (let level = [...roots, ...others]; level.length > 0; ) {
      const wanted = level.filter((pair) => this.#isNew(pair.oid));
      const objects = await this.#read([...new Set(wanted.flatMap(({ oid, bases }) => [oid, ...bases]))]);
      const next: Pair[] = [];
      await inSlices(wanted, (pair) => {
        const object = objects.get(pair.oid);
        if (object === undefined || !this.#isNew(pair.oid)) return;
        const bases = pair.bases.map((base) => objects.get(base)).filter((base) => base !== undefined);
        for (const below of this.#below(object, bases)) (below.isTree ? next : files).push(below);
        this.#take(
          object,
          bases.find((base) => this.#isBase(base, object)),
        );
      });
      if (this.#collected.size + files.length > MAX_OBJECTS) throw new LimitReached();
      level = next;
    }
    await this.#files(files);
  }

  /** Returns the entries of a new tree that may be new too. */
  #below(object: GitObject, bases: readonly GitObject[]): (Pair & { readonly isTree: boolean })[] {
    if (object.type !== 'tree') return [];
    const before = bases.filter((base) => base.type === 'tree');
    const windows = before.map((base) => treeWindow(base.data, object.data));
    // Skips entries that are equal in a tree of the remote, or in a tree that was collected with all entries below it.
    const first = before.findIndex((base) => this.#isBase(base, object));
    const window = windows[first];
    const entries = window === undefined ? parseTree(object.data, object.oid) : parseTree(window.target, '');
    const old = windows.map(({ base }, index) => {
      const parsed = parseTree(base, '');
      if (this.#there.has(before[index]?.oid ?? '')) for (const { oid } of parsed) this.#there.add(oid);
      return new Map(parsed.map((entry) => [entry.rawName, entry]));
    });
    const found: (Pair & { isTree: boolean })[] = [];
    for (const { mode, oid, rawName } of entries) {
      if (mode === '160000') continue;
      const isTree = mode === '040000';
      const same = old.map((names) => names.get(rawName)).filter((entry) => entry !== undefined);
      // An entry with a new name is often a copy of its neighbour.
      if (same.length === 0 && this.#isNew(oid)) for (const base of before) this.#markAll(base);
      if (!this.#isNew(oid)) continue;
      const alike = same.filter((entry) => (entry.mode === '040000') === isTree && entry.oid !== oid);
      found.push({ oid, isTree, bases: alike.map((entry) => entry.oid) });
    }
    return found;
  }

  /** Marks all entries of a tree if the remote has it. */
  #markAll({ oid, data }: GitObject): void {
    if (!this.#there.has(oid) || this.#marked.has(oid)) return;
    this.#marked.add(oid);
    for (const entry of parseTree(data, oid)) this.#there.add(entry.oid);
  }

  async #files(pairs: readonly Pair[]): Promise<void> {
    const wanted = pairs.filter(({ oid }) => this.#isNew(oid));
    const oids = [...new Set(wanted.map(({ oid }) => oid))];
    // Checked first, so that no data beyond the limit is read.
    const sizes = (await this.#reader.statObjects(oids)).map((stat) => stat?.size ?? 0);
    if (sizes.reduce((sum, size) => sum + size, this.#bytes) > MAX_BYTES) throw new LimitReached();
    const objects = await this.#read(oids);
    const large = wanted.filter(({ oid }) => (objects.get(oid)?.size ?? 0) >= MIN_DELTA_BYTES);
    const bases = await this.#read([...new Set(large.flatMap((pair) => pair.bases.slice(0, 1)))]);
    for (const pair of wanted) {
      const object = objects.get(pair.oid);
      const base = bases.get(pair.bases[0] ?? '');
      if (object !== undefined && this.#isNew(pair.oid))
        this.#take(object, this.#isBase(base, object) ? base : undefined);
    }
  }

  #isNew(oid: Oid): boolean {
    return !this.#there.has(oid) && !this.#collected.has(oid);
  }

  #isBase(base: GitObject | undefined, { type }: GitObject): base is GitObject {
    return base?.type === type && (this.#there.has(base.oid) || this.#collected.has(base.oid));
  }

  #take(object: GitObject, base?: GitObject): void {
    this.#bytes += object.size;
    this.#collected.set(object.oid, { type: object.type, data: object.data, base });
    if (this.#bytes > MAX_BYTES || this.#collected.size > MAX_OBJECTS) throw new LimitReached();
  }

  /** The objects in the order of the request. Throws NotFound for a missing one. */
  async #read(oids: readonly Oid[]): Promise<Map<Oid, GitObject>> {
    if (oids.length > 2 * MAX_OBJECTS) throw new LimitReached();
    const objects = oids.length === 0 ? [] : await this.#reader.readObjects(oids);
    return new Map(
      oids.map((oid, index) => {
        const object = objects[index];
        if (object === undefined)
          throw new SluiceError('NotFound', `${oid} cannot be pushed: the local repository has no such object`);
        return [oid, object];
      }),
    );
  }
}

function targetOf({ oid, data }: GitObject): Oid {
  const target = targetOfTag(data);
  if (target === undefined)
    throw new SluiceError('Corrupt', `tag ${oid} is damaged: it names no object. Run "git fsck" in the repository`);
  return target;
}
