import { isSluiceError } from '../../foundation/sluice-error.ts';
import { parseCommit } from '../../git/commit-codec.ts';
import type { GitObject, GitRepository, Oid, TreeEntry } from '../../git/git-repository.ts';
import { inSlices } from '../../git/in-slices.ts';
import { targetOfTag } from '../../git/tag-codec.ts';
import { decodeEntry, parseTree } from '../../git/tree-codec.ts';
import { parseCommitMessage } from '../commit-message.ts';
import type { CommitInfo } from '../package-revision.ts';
import { parseRecord, type RevisionRecord } from '../record.ts';
import type { FactCache } from './fact-cache.ts';
import { KptfileFact } from './kptfile-fact.ts';

/** Objects asked for in one go, and parsed without a pause: about 10 ms of work. */
const SLICE = 128;
/** Slices under way at once. */
const UNDER_WAY = 3;
/** Larger objects are read by nobody here. A tree of this size has some 400,000 entries. */
const MAX_BYTES = 16 * 1024 * 1024;

/** A place where a package may be: a commit (or an annotated tag) and a folder. */
export interface Place {
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
  async commits(places: readonly Place[]): Promise<void> {
    const missing: Place[] = [];
    const blobs = new Set<Oid>();
    await inSlices(places, (place) => {
      const known = this.commit(place);
      if (known === undefined) missing.push(place);
      else if (known.kptfileBlob !== undefined) blobs.add(known.kptfileBlob);
    });
    await inBatches(missing, (batch) => this.#readCommits(batch));
    await this.kptfiles(blobs);
  }

  /** What is in the cache; undefined where there is no commit. */
  commit(place: Place): CommitInfo | undefined {
    return this.#cache.commits.get(commitKey(place));
  }

  async #readCommits(places: readonly Place[]): Promise<void> {
    const objects = await this.#read(places.flatMap((place) => [place.oid, `${place.oid}:${place.path}`]));
    const blobs: Oid[] = [];
    for (const [position, place] of places.entries()) {
      // A ref led here: an object that is gone is no revision that is gone.
      if (objects[2 * position] === undefined) await this.#git.expectObject(place.oid);
      const commit = await this.#peel(objects[2 * position]);
      const folder = objects[2 * position + 1];
      const tree = folder?.type === 'tree' ? folder : undefined;
      const kptfileBlob = tree === undefined ? undefined : findKptfile(tree);
      const info = commit === undefined ? undefined : describe(commit, tree?.oid, kptfileBlob);
      if (info === undefined) continue;
      this.#cache.commits.set(commitKey(place), info);
      if (kptfileBlob !== undefined) blobs.push(kptfileBlob);
    }
    await this.#readKptfiles(blobs);
  }

  /** Follows an annotated tag to its commit. */
  async #peel(object: GitObject | undefined, depth = 0): Promise<GitObject | undefined> {
    if (object === undefined || object.type === 'commit') return object;
    const target = targetOfTag(object.data);
    if (object.type !== 'tag' || target === undefined || depth > 5) return undefined;
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
    for (const [position, blob] of missing.entries()) {
      if (this.#cache.kptfiles.has(blob)) continue;
      const object = objects[position];
      if (object?.type === 'blob') {
        this.#cache.kptfiles.set(blob, KptfileFact.read(object.data));
      } else if ((await this.#git.statObjects([blob]))[0]?.type === 'blob') {
        this.#cache.kptfiles.set(blob, KptfileFact.ofProblem('the file is too large to be read'));
      }
    }
  }

  /** Objects in the order asked; missing ones are undefined, and so are those that somebody made too large for any use here. */
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
    const missing = oids.filter((oid) => !this.#cache.records.has(oid));
    await inBatches(missing, async (slice) => {
      const objects = await this.#read(slice);
      for (const [position, oid] of slice.entries()) this.#cache.records.set(oid, readRecord(objects[position]));
    });
  }

  /** The tree of a folder in a commit; undefined if there is none. */
  async treeOf(commit: Oid, directory: string): Promise<Oid | undefined> {
    const [stat] = await this.#git.statObjects([`${commit}:${directory}`]);
    return stat?.type === 'tree' ? stat.oid : undefined;
  }

  /** The Kptfile directly in each folder, or else the folders in it; undefined for a tree that is not there. */
  async inspect(trees: readonly Oid[]): Promise<(Inspection | undefined)[]> {
    const unknown = trees.filter((tree) => !this.#cache.folders.has(tree));
    const objects = new Map((await this.#read(unknown)).map((object, position) => [unknown[position], object]));
    return trees.map((tree) => {
      const known = this.#cache.folders.get(tree);
      if (known !== undefined) return { kptfile: known, children: [] };
      const object = objects.get(tree);
      if (object?.type !== 'tree') return undefined;
      const kptfile = findKptfile(object);
      if (kptfile === undefined)
        return { kptfile, children: entriesOf(object).filter((entry) => entry.mode === '040000') };
      this.#cache.folders.set(tree, kptfile);
      return { kptfile, children: [] };
    });
  }
}

export interface Inspection {
  readonly kptfile: Oid | undefined;
  readonly children: readonly TreeEntry[];
}

function findKptfile(tree: GitObject): Oid | undefined {
  return entriesOf(tree).find((entry) => entry.name === 'Kptfile' && entry.mode.startsWith('100'))?.oid;
}

function entriesOf(tree: GitObject): TreeEntry[] {
  try {
    return parseTree(tree.data, tree.oid).map(decodeEntry);
  } catch (error) {
    // A tree that Git itself would call corrupt holds no package.
    if (isSluiceError(error, 'Corrupt')) return [];
    throw error;
  }
}

function describe(commit: GitObject, tree: Oid | undefined, kptfileBlob: Oid | undefined): CommitInfo | undefined {
  try {
    const decoded = parseCommit(commit.data, commit.oid);
    const newline = decoded.message.indexOf('\n');
    return {
      oid: commit.oid,
      time: decoded.committer.time,
      author: decoded.author.name,
      parents: decoded.parents,
      subject: newline === -1 ? decoded.message : decoded.message.slice(0, newline),
      facts: parseCommitMessage(decoded.message),
      tree,
      kptfileBlob,
    };
  } catch {
    // A commit that cannot be decoded is no revision; `git fsck` has the words for it.
    return undefined;
  }
}

function readRecord(object: GitObject | undefined): RevisionRecord | null {
  if (object?.type !== 'commit') return null;
  try {
    return parseRecord(parseCommit(object.data, object.oid).message);
  } catch {
    // An unreadable record counts as missing, which never opens a gate.
    return null;
  }
}

/** Where the cache keeps what a commit says about a folder. */
export function commitKey(place: Place): string {
  return `${place.oid}:${place.path}`;
}

/**
 * Works through many items in slices. Some are under way at once, so that Git already reads the next ones while the last ones
 * are parsed, and between slices timers and I/O get their turn.
 */
export async function inBatches<Item>(
  items: readonly Item[],
  work: (slice: readonly Item[]) => Promise<void>,
): Promise<void> {
  let start = 0;
  const worker = async () => {
    while (start < items.length) {
      const slice = items.slice(start, start + SLICE);
      start += SLICE;
      await work(slice);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await Promise.all(Array.from({ length: UNDER_WAY }, worker));
}
