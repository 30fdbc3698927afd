import { readKptfile } from '../../../kptfile-schema/index.ts';
import { parseCommit } from '../../git/commit-codec.ts';
import type { GitObject, GitRepository, Oid } from '../../git/git-repository.ts';
import { parseCommitMessage } from '../commit-message.ts';
import type { CommitInfo } from '../package-revision.ts';
import { parseRecord, type RevisionRecord } from '../record.ts';
import type { FactCache, FolderFact } from './fact-cache.ts';

/** Objects asked for in one go, and parsed without a pause: about 10 ms of work. */
const SLICE = 128;
/** Folders deeper than this hold no packages. */
const MAX_DEPTH = 32;

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

  /** Commits and Kptfiles of many places, in order; undefined where there is no commit. */
  async commits(places: readonly Place[]): Promise<(CommitInfo | undefined)[]> {
    const found: (CommitInfo | undefined)[] = [];
    for (const slice of slices(places)) {
      found.push(...(await this.#commitSlice(slice)));
      await pause();
    }
    return found;
  }

  async #commitSlice(places: readonly Place[]): Promise<(CommitInfo | undefined)[]> {
    const missing = places.filter((place) => !this.#cache.commits.has(commitKey(place)));
    if (missing.length > 0) await this.#readCommits(missing);
    return places.map((place) => this.#cache.commits.get(commitKey(place)));
  }

  async #readCommits(missing: readonly Place[]): Promise<void> {
    const wanted = missing.flatMap((place) => [place.oid, `${place.oid}:${inFolder(place.path, 'Kptfile')}`]);
    const [objects, trees] = await Promise.all([
      this.#git.readObjects(wanted),
      this.#git.statObjects(missing.map((place) => `${place.oid}:${place.path}`)),
    ]);
    for (const [position, place] of missing.entries()) {
      const commit = await this.#peel(objects[2 * position]);
      if (commit === undefined) continue;
      const blob = objects[2 * position + 1];
      const info = describe(commit, trees[position]?.oid, blob?.type === 'blob' ? blob.oid : undefined);
      if (info === undefined) continue;
      if (blob?.type === 'blob') this.#rememberKptfile(blob);
      this.#cache.commits.set(commitKey(place), info);
    }
  }

  /** Follows an annotated tag to its commit. */
  async #peel(object: GitObject | undefined, depth = 0): Promise<GitObject | undefined> {
    if (object === undefined || object.type === 'commit') return object;
    const target = /^object ([0-9a-f]{40})\n/.exec(object.data.toString('latin1'))?.[1];
    if (object.type !== 'tag' || target === undefined || depth > 5) return undefined;
    const [next] = await this.#git.readObjects([target]);
    return this.#peel(next, depth + 1);
  }

  /** Puts the Kptfiles of these blobs into the cache. */
  async kptfiles(blobs: readonly Oid[]): Promise<void> {
    const missing = [...new Set(blobs)].filter((blob) => !this.#cache.kptfiles.has(blob));
    for (const slice of slices(missing)) {
      for (const object of await this.#git.readObjects(slice)) {
        if (object !== undefined) this.#rememberKptfile(object);
      }
      await pause();
    }
  }

  #rememberKptfile(blob: GitObject): void {
    if (this.#cache.kptfiles.has(blob.oid)) return;
    const result = readKptfile(blob.data);
    this.#cache.kptfiles.set(blob.oid, result.ok ? { kptfile: result.kptfile } : { problem: result.error.message });
  }

  /** Puts the records at these commits into the cache. */
  async records(oids: readonly Oid[]): Promise<void> {
    const missing = oids.filter((oid) => !this.#cache.records.has(oid));
    for (const slice of slices(missing)) {
      const objects = await this.#git.readObjects(slice);
      for (const [position, oid] of slice.entries()) this.#cache.records.set(oid, readRecord(objects[position]));
      await pause();
    }
  }

  /** All packages below a folder of a commit: folders with a Kptfile; what lies below one belongs to it. */
  async folders(specification: string): Promise<FolderFact[]> {
    const found: FolderFact[] = [];
    const [root] = await this.#git.statObjects([specification]);
    if (root?.type !== 'tree') return found;
    let level: { path: string; tree: Oid }[] = [{ path: '', tree: root.oid }];
    for (let depth = 0; level.length > 0 && depth < MAX_DEPTH; depth++) {
      const next: { path: string; tree: Oid }[] = [];
      for (const slice of slices(level)) {
        const inspected = await Promise.all(slice.map((folder) => this.#inspect(folder.tree)));
        for (const [position, folder] of slice.entries()) {
          const inside = inspected[position];
          if (inside === undefined) continue;
          if (inside.kptfile !== null && folder.path !== '') {
            found.push({ path: folder.path, tree: folder.tree, kptfileBlob: inside.kptfile });
          } else {
            for (const child of inside.children) {
              next.push({ path: folder.path === '' ? child.name : `${folder.path}/${child.name}`, tree: child.oid });
            }
          }
        }
        await pause();
      }
      level = next;
    }
    return found;
  }

  async #inspect(
    tree: Oid,
  ): Promise<{ kptfile: Oid | null; children: readonly { name: string; oid: Oid }[] } | undefined> {
    const known = this.#cache.folders.get(tree);
    if (known !== undefined) return { kptfile: known, children: [] };
    const entries = await this.#git.readTree(tree);
    if (entries === undefined) return undefined;
    const kptfile = entries.find((entry) => entry.name === 'Kptfile' && entry.mode.startsWith('100'))?.oid ?? null;
    if (kptfile !== null) this.#cache.folders.set(tree, kptfile);
    return { kptfile, children: entries.filter((entry) => entry.mode === '040000') };
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

function inFolder(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}

/** Where the cache keeps what a commit says about a folder. */
export function commitKey(place: Place): string {
  return `${place.oid}:${place.path}`;
}

function* slices<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let start = 0; start < items.length; start += SLICE) yield items.slice(start, start + SLICE);
}

/** Lets timers and I/O run between slices of a long read. */
function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
