import { joinPath } from '../../src/delivery/path-rules.ts';
import type { DeploymentContext, TreeAt } from '../../src/delivery/status/deployment-state.ts';
import { isWithin } from '../../src/delivery/status/engine-values.ts';
import { includesFolder, KUSTOMIZATION_NAMES, listedPaths } from '../../src/delivery/status/included-folders.ts';
import { ignorePatterns, leftOutBy, SOURCE_IGNORE } from '../../src/delivery/status/left-out-folders.ts';
import { LruCache } from '../../src/foundation/lru-cache.ts';
import type { GitRemote, GitRepository, Oid } from '../../src/git/git-repository.ts';
import { openLocation } from '../../src/git/open/open-location.ts';
import type { TargetBranchOptions } from '../delivery/branch/target-branch.ts';

/** Milliseconds after which an unknown commit is fetched again; doubled with each attempt. */
const UNKNOWN_RETRY_MS = 30_000;
const MAX_UNKNOWN_RETRY_MS = 1_800_000;
/** Commits that are remembered as unknown; engines can report anything. */
const MAX_UNKNOWN_COMMITS = 1000;
const MAX_COMMITS = 10_000;
const MAX_FOLDERS = 200_000;
const MAX_KUSTOMIZATIONS = 10_000;
/** Bytes of a kustomization; a larger one counts as empty. */
const MAX_KUSTOMIZATION_BYTES = 1024 * 1024;
/** Bytes of a `.sourceignore`; a larger one counts as one that can match everything. */
const MAX_IGNORE_BYTES = 64 * 1024;
const MAX_IGNORES_BYTES = 16 * 1024 * 1024;
const FETCHED_REF = 'refs/sluice/read-back';

interface UnknownCommit {
  readonly attempts: number;
  /** Milliseconds since the epoch. */
  readonly retryAt: number;
}

/** What is known of the commits of one target; kept between reconciliations, and may be dropped at any time. */
export interface KnownTrees {
  /** The tree of the target's directory by commit; null if the commit has none. A tree is in it as its own. */
  readonly directories: LruCache<Oid, Oid | null>;
  /** The tree of a folder by the tree of the directory, a space and its path in it; null if there is none. */
  readonly folders: LruCache<string, Oid | null>;
  readonly unknown: LruCache<Oid, UnknownCommit>;
  /** What the kustomization of a folder lists, by `kustomizationKey`; null if there is none. */
  readonly kustomizations: LruCache<string, ReadonlySet<string> | null>;
  /** The patterns of files `.sourceignore`, by the name of the object as Git reads it; null if there is none. */
  readonly ignores: LruCache<string, readonly string[] | null>;
}

export function knownTrees(): KnownTrees {
  return {
    directories: new LruCache({ maxEntries: MAX_COMMITS }),
    folders: new LruCache({ maxEntries: MAX_FOLDERS }),
    unknown: new LruCache({ maxEntries: MAX_UNKNOWN_COMMITS }),
    kustomizations: new LruCache({ maxEntries: MAX_KUSTOMIZATIONS }),
    ignores: new LruCache({ maxEntries: MAX_FOLDERS, maxSize: MAX_IGNORES_BYTES }),
  };
}

/** Trees of folders at commits of a target's branch, read from its mirror. */
export class BranchTrees {
  readonly #git: GitRepository;
  readonly #remote: GitRemote | undefined;
  readonly #ref: string;
  readonly #directory: string;
  readonly #known: KnownTrees;
  #isFetched = false;

  private constructor(
    git: GitRepository,
    remote: GitRemote | undefined,
    ref: string,
    directory: string,
    known: KnownTrees,
  ) {
    this.#git = git;
    this.#remote = remote;
    this.#ref = ref;
    this.#directory = directory;
    this.#known = known;
  }

  /** `directory` is that of the target, from the root of the repository. */
  static async open(options: TargetBranchOptions, directory: string, known: KnownTrees): Promise<BranchTrees> {
    const { url, branch, mirrorPath, hostedFolder, credentials, git: repository } = options;
    const { git, remote } = await openLocation({
      ...{ url, mirrorPath, hostedFolder },
      ...(credentials === undefined ? {} : { credentials }),
      ...(repository === undefined ? {} : { repository }),
    });
    return new BranchTrees(git, remote, `refs/heads/${branch}`, directory, known);
  }

  /** The newest commits of the branch, the newest first, along the first parents. */
  async newestCommits(count: number, signal: AbortSignal): Promise<Oid[]> {
    if (this.#remote !== undefined) await this.#fetch(signal);
    const commits: Oid[] = [];
    let next = await this.#git.resolveRef(this.#remote === undefined ? this.#ref : FETCHED_REF);
    while (next !== undefined && commits.length < count) {
      commits.push(next);
      next = (await this.#git.readCommit(next)).parents[0];
    }
    return commits;
  }

  /**
   * Reads the trees of these folders at these commits, or in these trees of the directory. One that the mirror does not have is fetched
   * with the branch: once, and again after growing pauses.
   */
  async read(wanted: ReadonlyMap<Oid, ReadonlySet<string>>, now: number, signal: AbortSignal): Promise<void> {
    const { directories, folders } = this.#known;
    await this.#readDirectories(
      [...wanted.keys()].filter((commit) => !directories.has(commit)),
      now,
      signal,
    );
    const missing = new Map<string, string>();
    for (const [commit, paths] of wanted) {
      const tree = directories.get(commit);
      if (tree == null) continue;
      for (const path of paths) {
        const key = folderKey(tree, this.#inside(path));
        if (!folders.has(key)) missing.set(key, `${tree}:${this.#inside(path)}`);
      }
    }
    const stats = await this.#git.statObjects([...missing.values()]);
    let index = 0;
    for (const key of missing.keys()) {
      const stat = stats[index];
      folders.set(key, stat?.type === 'tree' ? stat.oid : null);
      index += 1;
    }
  }

  /** Reads the kustomizations of folders at commits that the mirror has. */
  async readKustomizations(wanted: readonly UnreadKustomization[]): Promise<void> {
    const names = wanted.flatMap(({ commit, folder }) =>
      KUSTOMIZATION_NAMES.map((name) => `${commit}:${joinPath(folder, name)}`),
    );
    const stats = await this.#git.statObjects(names);
    for (const [index, { commit, folder }] of wanted.entries()) {
      const at = index * KUSTOMIZATION_NAMES.length;
      const stat = stats.slice(at, at + KUSTOMIZATION_NAMES.length).find((one) => one?.type === 'blob');
      const isRead = stat !== undefined && stat.size <= MAX_KUSTOMIZATION_BYTES;
      const [blob] = isRead ? await this.#git.readObjects([stat.oid]) : [];
      const text = blob === undefined ? '' : new TextDecoder().decode(blob.data);
      this.#known.kustomizations.set(
        kustomizationKey(commit, folder),
        stat === undefined ? null : listedPaths(folder, text),
      );
    }
  }

  /** Reads files `.sourceignore` by the names of their objects. */
  async readIgnores(names: readonly string[]): Promise<void> {
    const stats = await this.#git.statObjects(names);
    for (const [index, name] of names.entries()) {
      const stat = stats[index];
      const isRead = stat?.type === 'blob' && stat.size <= MAX_IGNORE_BYTES && !(await this.#isLink(name));
      const [blob] = isRead ? await this.#git.readObjects([stat.oid]) : [];
      const patterns = blob === undefined ? ['*'] : ignorePatterns(new TextDecoder().decode(blob.data));
      const size = patterns.reduce((sum, pattern) => sum + pattern.length, 0);
      this.#known.ignores.set(name, stat?.type === 'blob' ? patterns : null, size);
    }
  }

  close(): Promise<void> {
    return this.#git.close();
  }

  /** True for a symbolic link, of which Flux reads the file that it names. */
  async #isLink(name: string): Promise<boolean> {
    const entries = await this.#git.readTree(name.slice(0, -SOURCE_IGNORE.length).replace(/\/$/, ''));
    return entries?.find((entry) => entry.name === SOURCE_IGNORE)?.mode === '120000';
  }

  /** The path of a folder inside the directory of the target. */
  #inside(path: string): string {
    return insideOf(this.#directory, path);
  }

  async #readDirectories(commits: readonly Oid[], now: number, signal: AbortSignal): Promise<void> {
    const { unknown } = this.#known;
    const due = commits.filter((commit) => {
      const entry = unknown.get(commit);
      // A clock that went back must not make it wait for long.
      return entry === undefined || now >= entry.retryAt || entry.retryAt - now > MAX_UNKNOWN_RETRY_MS;
    });
    let missing = await this.#look(due);
    if (missing.length > 0 && this.#remote !== undefined && !this.#isFetched) {
      await this.#fetch(signal);
      missing = await this.#look(missing);
    }
    for (const commit of missing) {
      const attempts = (unknown.get(commit)?.attempts ?? 0) + 1;
      const pause = Math.min(UNKNOWN_RETRY_MS * 2 ** (attempts - 1), MAX_UNKNOWN_RETRY_MS);
      unknown.set(commit, { attempts, retryAt: now + pause });
    }
  }

  /** Reads the directory of the target at commits, or as trees, and returns those that are not there. */
  async #look(commits: readonly Oid[]): Promise<Oid[]> {
    if (commits.length === 0) return [];
    const stats = await this.#git.statObjects(commits);
    const types = new Map(commits.map((commit, index) => [commit, stats[index]?.type]));
    const present = commits.filter((commit) => types.get(commit) === 'commit' || types.get(commit) === 'tree');
    const trees = await this.#git.statObjects(
      present.map((commit) => (types.get(commit) === 'tree' ? commit : `${commit}:${this.#directory}`)),
    );
    for (const [index, commit] of present.entries()) {
      const tree = trees[index];
      this.#known.directories.set(commit, tree?.type === 'tree' ? tree.oid : null);
      this.#known.unknown.delete(commit);
    }
    const here = new Set(present);
    return commits.filter((commit) => !here.has(commit));
  }

  async #fetch(signal: AbortSignal): Promise<void> {
    if (this.#remote === undefined || this.#isFetched) return;
    // A ref of its own: the delivery controller fetches the branch of the same mirror.
    await this.#git.fetch(this.#remote, { refspecs: [`+${this.#ref}:${FETCHED_REF}`], signal });
    this.#isFetched = true;
  }
}

/** True if everything is known that `wanted` names, so that the mirror need not be opened. */
export function isKnown(
  { directories, folders, unknown }: KnownTrees,
  directory: string,
  wanted: ReadonlyMap<Oid, ReadonlySet<string>>,
  now: number,
): boolean {
  return [...wanted].every(([commit, paths]) => {
    const tree = directories.get(commit);
    if (tree === undefined) return (unknown.get(commit)?.retryAt ?? 0) > now;
    return tree === null || [...paths].every((path) => folders.has(folderKey(tree, insideOf(directory, path))));
  });
}

/** Looks up what `BranchTrees.read` has read. */
export function treeLookup({ directories, folders }: KnownTrees, directory: string): TreeAt {
  return (commit, folder) => {
    const tree = directories.get(commit);
    if (tree === undefined) return 'unknown';
    return tree === null ? 'absent' : (folders.get(folderKey(tree, insideOf(directory, folder))) ?? 'absent');
  };
}

export interface UnreadKustomization {
  readonly commit: Oid;
  readonly folder: string;
}

/**
 * Whether objects of engines deploy folders, by the kustomizations that were read. `unread` gets the ones that have to be read to know it;
 * until then the folder does not count as deployed.
 */
export function folderLookup(
  { kustomizations }: KnownTrees,
  unread: Map<string, UnreadKustomization>,
): NonNullable<DeploymentContext['includes']> {
  return ({ path, subfolders }, commit, folder) => {
    const listed = (one: string) => kustomizations.get(kustomizationKey(commit, one));
    const result = includesFolder(listed, path, folder, subfolders === 'Found');
    if (typeof result === 'boolean') return result;
    unread.set(kustomizationKey(commit, result.unread), { commit, folder: result.unread });
    return false;
  };
}

/**
 * Why what an engine reads may lack folders, by the files `.sourceignore` that were read. `unread` gets the names of those that have to be
 * read to know it; until then the folder may be left out. The file in the folder itself is named by the tree of the folder, so that it is
 * read again only after a change of the folder.
 */
export function ignoreLookup(
  { ignores }: KnownTrees,
  treeAt: TreeAt,
  unread: Set<string>,
): NonNullable<DeploymentContext['leftOut']> {
  return ({ artifact }, commit, folder) => {
    if (artifact === undefined) return undefined;
    const patternsIn = (place: string) => {
      const name =
        place === folder ? `${treeAt(commit, folder)}:${SOURCE_IGNORE}` : `${commit}:${joinPath(place, SOURCE_IGNORE)}`;
      // Not `get`: the same few names are looked up for each package, and moving them in a large map is slow.
      const patterns = ignores.peek(name);
      if (patterns === undefined) unread.add(name);
      return patterns;
    };
    return leftOutBy(artifact, patternsIn, folder);
  };
}

function kustomizationKey(commit: Oid, folder: string): string {
  return `${commit} ${folder}`;
}

function folderKey(tree: Oid, inside: string): string {
  return `${tree} ${inside}`;
}

function insideOf(directory: string, path: string): string {
  if (!isWithin(path, directory)) return joinPath(path);
  return directory === '' ? path : path.slice(directory.length + 1);
}
