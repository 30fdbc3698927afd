import { createPacer, inSlices, yieldToEventLoop } from '../../../foundation/concurrency/in-slices.ts';
import { mapLimited } from '../../../foundation/concurrency/map-limited.ts';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { DamageError } from '../../../git/errors.ts';
import type { GitObject, GitRepository, ObjectStat, Oid } from '../../../git/git-repository.ts';
import { parseCommit } from '../../../git/objects/commit-codec.ts';
import { targetOfTag } from '../../../git/objects/tag-codec.ts';
import { encodeName, pickEntries, type RawTreeEntry } from '../../../git/objects/tree-codec.ts';
import { unreadableReason } from '../../model/content/unreadable-content.ts';
import { parseRecord } from '../../model/record/record.ts';
import { type CommitFact, commitFactOf, MAX_COMMIT_BYTES, unreadCommit, withTag } from './commit-fact.ts';
import type { FactCache } from './fact-cache.ts';
import { KptfileFact } from './kptfile-fact.ts';
import { RecordFact } from './record-fact.ts';
import { TipFact } from './tip-fact.ts';

/** Objects that are requested at once. */
const BATCH_OBJECTS = 128;
/** Bytes of commits and tags in one batch. */
const BATCH_BYTES = 8 * 1024 * 1024;
/** Slices under way at once. */
const MAX_CONCURRENT_BATCHES = 6;
/** Number of packages in one commit from which its root tree is walked once here. */
const MIN_SHARED_PACKAGES = 16;
/** Larger objects are not read here. A tree of this size has some 400,000 entries. */
const MAX_BYTES = 16 * 1024 * 1024;

/** A place where a package may be: a commit (or an annotated tag) and a folder. */
export interface CommitFolder {
  readonly oid: Oid;
  readonly path: string;
}

/** Reads what the index needs from Git, in batches, each object once. */
export class FactReader {
  readonly #git: GitRepository;
  readonly #cache: FactCache;

  constructor(git: GitRepository, cache: FactCache) {
    this.#git = git;
    this.#cache = cache;
  }

  /** Brings commits and Kptfiles of many places into the cache. */
  async commits(places: readonly CommitFolder[]): Promise<void> {
    const missing: CommitFolder[] = [];
    const blobs = new Set<Oid>();
    await inSlices(places, (place) => {
      const known = this.tip(place);
      if (known === undefined) missing.push(place);
      else if (known.kptfileBlob !== undefined) blobs.add(known.kptfileBlob);
    });
    const byCommit = new Map<Oid, CommitFolder[]>();
    await inSlices(missing, (place) => addTo(byCommit, place));
    const alone: CommitFolder[] = [];
    for (const together of byCommit.values()) {
      if (together.length < MIN_SHARED_PACKAGES) for (const place of together) alone.push(place);
      else await this.#readTogether(together);
    }
    await inBatches(alone, (batch) => this.#readCommits(batch, specificationOf));
    await this.kptfiles(blobs);
  }

  /**
   * Many folders of one commit. Git would go through the root tree again for each of them, which takes a hundred times as long as
   * reading a package where ten thousand packages lie side by side.
   */
  async #readTogether(places: readonly CommitFolder[]): Promise<void> {
    const [first] = places;
    const [root] = first === undefined ? [] : await this.#read([`${first.oid}:`]);
    const split = ({ path }: CommitFolder) => path.split(/\/(.*)/s, 2) as [string, string | undefined];
    const names = new Set(places.map((place) => encodeName(split(place)[0])));
    const entries = (root?.type === 'tree' ? pick(root, names) : undefined) ?? NOTHING;
    const folderOf = (place: CommitFolder) => {
      const [name, rest] = split(place);
      const entry = entries.get(encodeName(name));
      if (entry?.mode !== '040000') return undefined;
      return rest === undefined ? entry.oid : `${entry.oid}:${rest}`;
    };
    await inBatches(places, (batch) => this.#readCommits(batch, folderOf));
  }

  /** Returns the cached fact; undefined if the commit does not exist. */
  tip(place: CommitFolder): TipFact | undefined {
    return this.#cache.tips.get(specificationOf(place));
  }

  /** Why the folder of a place, or one above it, is a tree that cannot be read; undefined if all of them can be, or the folder is not there. */
  async flawOf({ oid, path }: CommitFolder): Promise<string | undefined> {
    const segments = path.split('/');
    for (let depth = 0; depth <= segments.length; depth += 1) {
      try {
        if ((await this.#git.readTree(`${oid}:${segments.slice(0, depth).join('/')}`)) === undefined) return undefined;
      } catch (error) {
        const reason = unreadableReason(error);
        if (reason === undefined) throw error;
        return reason;
      }
    }
    return undefined;
  }

  /** `folderOf` returns where the folder of a place is read; undefined if it does not exist. */
  async #readCommits(
    places: readonly CommitFolder[],
    folderOf: (place: CommitFolder) => string | undefined,
  ): Promise<void> {
    const { groups, excessive, stats } = await this.#bySize(places, ({ oid }) => oid);
    for (const group of groups) await this.#readGroup(group, folderOf);
    for (const place of excessive) {
      const folder = folderOf(place);
      const [stat, tree] = [stats.get(place.oid), folder === undefined ? undefined : (await this.#read([folder]))[0]];
      if (stat?.type === 'commit') this.#putTip(place, unreadCommit(stat), tree);
    }
  }

  /** Items in groups whose objects are read in one go, without those whose objects are larger than what is read of a commit. */
  async #bySize<Item>(
    items: readonly Item[],
    oidOf: (item: Item) => Oid,
  ): Promise<{
    readonly groups: readonly (readonly Item[])[];
    readonly excessive: readonly Item[];
    readonly stats: ReadonlyMap<Oid, ObjectStat>;
  }> {
    const oids = [...new Set(items.map(oidOf))];
    const found = await this.#git.statObjects(oids);
    const stats = new Map(
      oids.flatMap((oid, position) => (found[position] === undefined ? [] : [[oid, found[position]]])),
    );
    const groups: Item[][] = [[]];
    const excessive: Item[] = [];
    let bytes = 0;
    for (const item of items) {
      const size = stats.get(oidOf(item))?.size ?? 0;
      if (size > MAX_COMMIT_BYTES) {
        excessive.push(item);
        continue;
      }
      if (bytes + size > BATCH_BYTES) {
        groups.push([]);
        bytes = 0;
      }
      groups.at(-1)?.push(item);
      bytes += size;
    }
    return { groups: groups.filter((group) => group.length > 0), excessive, stats };
  }

  async #readGroup(
    places: readonly CommitFolder[],
    folderOf: (place: CommitFolder) => string | undefined,
  ): Promise<void> {
    const wanted = [...new Set(places.flatMap((place) => [place.oid, folderOf(place) ?? place.oid]))];
    const read = await this.#read(wanted);
    const objects = new Map(wanted.map((specification, position) => [specification, read[position]]));
    const pause = createPacer();
    const commits = new Map<Oid, Promise<CommitFact | undefined>>();
    // Several publications can have one commit.
    const tagged = new Map<Oid, Promise<CommitFact | undefined>>();
    for (const place of places) {
      const { oid } = place;
      await pause();
      // A ref refers to it: a missing object must not count as a missing revision.
      if (objects.get(oid) === undefined) await this.#git.expectObject(oid);
      const object = objects.get(oid);
      const described = commits.get(oid) ?? this.#describe(object, tagged);
      commits.set(oid, described);
      const commit = await described;
      if (commit === undefined) continue;
      this.#putTip(place, commit, objects.get(folderOf(place) ?? ''));
    }
    const tips = places.map((place) => this.tip(place)?.kptfileBlob);
    await this.#readKptfiles(tips.filter((blob) => blob !== undefined));
  }

  #putTip(place: CommitFolder, commit: CommitFact, folder: GitObject | undefined): void {
    const tree = folder?.type === 'tree' ? folder : undefined;
    const kptfileBlob = kptfileAmong((tree && pick(tree, KPTFILE)) ?? NOTHING);
    this.#cache.tips.set(specificationOf(place), new TipFact(commit.oid, tree?.oid, kptfileBlob, commit.text));
    this.#cache.reads += 1;
  }

  /** Reads the facts about a commit, or about the one of a tag; `tagged` has those that were read for other tags. */
  async #describe(
    object: GitObject | undefined,
    tagged: Map<Oid, Promise<CommitFact | undefined>>,
  ): Promise<CommitFact | undefined> {
    const target = object?.type === 'tag' ? targetOfTag(object.data) : undefined;
    const known = target === undefined ? undefined : tagged.get(target);
    const described = known ?? this.#peel(object).then((commit) => commit && commitFactOf(commit));
    if (target !== undefined) tagged.set(target, described);
    return withTag(await described, object);
  }

  /** Follows an annotated tag to its commit. */
  async #peel(object: GitObject | undefined, depth = 0): Promise<GitObject | undefined> {
    if (object === undefined || object.type === 'commit') return object;
    const target = targetOfTag(object.data);
    if (object.type !== 'tag' || target === undefined || depth > 5) return undefined;
    const [stat] = await this.#git.statObjects([target]);
    if (stat === undefined || stat.size > MAX_COMMIT_BYTES) return undefined;
    const [next] = await this.#read([target]);
    return this.#peel(next, depth + 1);
  }

  /** Puts the Kptfiles of these blobs into the cache. */
  async kptfiles(blobs: Iterable<Oid>): Promise<void> {
    const missing = new Set<Oid>();
    await inSlices(blobs, (blob) => {
      if (!this.#cache.kptfiles.has(blob)) missing.add(blob);
    });
    await inBatches([...missing], (batch) => this.#readKptfiles(batch));
  }

  async #readKptfiles(blobs: readonly Oid[]): Promise<void> {
    const missing = [...new Set(blobs)].filter((blob) => !this.#cache.kptfiles.has(blob));
    if (missing.length === 0) return;
    const objects = await this.#read(missing);
    // Parsing a large Kptfile takes tens of milliseconds, and one push may contain many.
    await inSlices(missing.entries(), ([position, blob]) => {
      const object = objects[position];
      if (object?.type !== 'blob' || this.#cache.kptfiles.has(blob)) return;
      this.#cache.kptfiles.set(blob, KptfileFact.read(object.data));
      this.#cache.reads += 1;
    });
    for (const blob of missing) {
      if (this.#cache.kptfiles.has(blob)) continue;
      if ((await this.#git.statObjects([blob]))[0]?.type === 'blob') {
        this.#cache.kptfiles.set(blob, KptfileFact.ofProblem('the file is too large to be read'));
      }
    }
  }

  /** Reads objects in the given order; missing and too large ones are undefined. */
  async #read(specifications: readonly string[]): Promise<(GitObject | undefined)[]> {
    try {
      return await this.#git.readObjects(specifications);
    } catch (error) {
      if (!isSluiceError(error, 'LimitExceeded')) throw error;
    }
    const objects: (GitObject | undefined)[] = [];
    for (const [position, stat] of (await this.#git.statObjects(specifications)).entries()) {
      const wanted = specifications.slice(position, position + (stat === undefined || stat.size > MAX_BYTES ? 0 : 1));
      objects.push((await this.#git.readObjects(wanted))[0]);
    }
    return objects;
  }

  /** Puts the records at these commits into the cache. */
  async records(oids: readonly Oid[]): Promise<void> {
    const { records, own } = this.#cache;
    const missing = oids.filter((oid) => {
      if (records.has(oid)) return false;
      const fact = own.recordAt(oid);
      if (fact === undefined) return true;
      records.set(oid, fact);
      this.#cache.reads += 1;
      return false;
    });
    await inBatches(missing, async (slice) => {
      const { groups, excessive } = await this.#bySize(slice, (oid) => oid);
      for (const oid of excessive) records.set(oid, null);
      for (const group of groups) {
        const objects = await this.#read(group);
        await inSlices(group.entries(), ([position, oid]) => {
          records.set(oid, readRecord(objects[position]));
        });
      }
      this.#cache.reads += slice.length;
    });
  }

  /** Reads the Kptfile directly in each folder, or else its tree; undefined for a missing tree. */
  async inspect(trees: readonly Oid[]): Promise<(Inspection | undefined)[]> {
    const unknown = trees.filter((tree) => !this.#cache.folders.has(tree));
    const objects = new Map((await this.#read(unknown)).map((object, position) => [unknown[position], object]));
    return trees.map((tree) => {
      const known = this.#cache.folders.get(tree);
      if (known !== undefined) return { kptfile: known, tree: undefined };
      const object = objects.get(tree);
      if (object?.type !== 'tree') return undefined;
      const picked = pick(object, KPTFILE);
      const kptfile = picked && kptfileAmong(picked);
      if (kptfile !== undefined) this.#cache.folders.set(tree, kptfile);
      this.#cache.reads += 1;
      return { kptfile, tree: picked !== undefined && kptfile === undefined ? object : undefined };
    });
  }
}

export interface Inspection {
  readonly kptfile: Oid | undefined;
  /** Of a folder that is no package. */
  readonly tree: GitObject | undefined;
}

const KPTFILE = new Set(['Kptfile']);
const NOTHING: ReadonlyMap<string, RawTreeEntry> = new Map();

function kptfileAmong(entries: ReadonlyMap<string, RawTreeEntry>): Oid | undefined {
  const entry = entries.get('Kptfile');
  return entry?.mode.startsWith('100') === true ? entry.oid : undefined;
}

/** Undefined for a malformed tree: it contains no package. Throws for one that was damaged in this repository. */
function pick(tree: GitObject, names: ReadonlySet<string>): Map<string, RawTreeEntry> | undefined {
  try {
    return pickEntries(tree.data, tree.oid, names);
  } catch (error) {
    if (isSluiceError(error, 'Corrupt') && !(error instanceof DamageError)) return undefined;
    throw error;
  }
}

function specificationOf({ oid, path }: CommitFolder): string {
  return `${oid}:${path}`;
}

function addTo(groups: Map<Oid, CommitFolder[]>, place: CommitFolder): void {
  const group = groups.get(place.oid);
  if (group === undefined) groups.set(place.oid, [place]);
  else group.push(place);
}

function readRecord(object: GitObject | undefined): RecordFact | null {
  if (object?.type !== 'commit') return null;
  try {
    return new RecordFact(parseRecord(parseCommit(object.data, object.oid).message));
  } catch {
    // An unreadable record counts as missing, which never opens a gate.
    return null;
  }
}

/**
 * Works through many items in slices. Several slices are under way at once, so that Git already reads the next ones while the last ones
 * are parsed. Yields to the event loop after each slice.
 */
export async function inBatches<Item>(
  items: readonly Item[],
  work: (slice: readonly Item[]) => Promise<void>,
): Promise<void> {
  const starts = Array.from({ length: Math.ceil(items.length / BATCH_OBJECTS) }, (_, batch) => batch * BATCH_OBJECTS);
  await mapLimited(starts, MAX_CONCURRENT_BATCHES, async (start) => {
    await work(items.slice(start, start + BATCH_OBJECTS));
    if (start + BATCH_OBJECTS < items.length) await yieldToEventLoop();
  });
}
