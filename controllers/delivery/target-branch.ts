import { joinPath } from '../../src/delivery/path-rules.ts';
import type { PresentFile } from '../../src/delivery/tree/branch-view.ts';
import { type FolderOwner, KUSTOMIZATION, readOwner } from '../../src/delivery/tree/kustomization.ts';
import { inSlices } from '../../src/foundation/concurrency/in-slices.ts';
import { isSluiceError, SluiceError } from '../../src/foundation/sluice-error.ts';
import { RefConflictError } from '../../src/git/errors.ts';
import type {
  FileEntry,
  GitCredentials,
  GitRemote,
  GitRepository,
  Oid,
  RefUpdate,
  Signature,
} from '../../src/git/git-repository.ts';
import { openLocation } from '../../src/git/open/open-location.ts';
import type { RepositoryOptions } from '../../src/git/open/open-repository.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';

export interface TargetBranchOptions {
  readonly url: string;
  /** Without `refs/heads/`. */
  readonly branch: string;
  /** Path of the mirror of a remote repository; it may be deleted at any time. */
  readonly mirrorPath: string;
  /** The folder of the repositories that Sluice hosts. */
  readonly hostedFolder?: string;
  readonly credentials?: () => Promise<GitCredentials>;
  readonly git?: RepositoryOptions;
}

/** Larger lists are not Sluice's: it writes one line for each file of a package. */
const MAX_LIST_BYTES = 1024 * 1024;
/** Files below the directory of a target, its folders counted: some 150 MB while a delivery runs. */
const MAX_FILES = 500_000;
/** Lists that are read in one batch. */
const LISTS_PER_READ = 1000;

/**
 * The owner in each list, by the id of the list; null for lists of other tools. The lists in the branch are cached for the next
 * reconciliation.
 */
type Marks = Map<Oid, FolderOwner | null>;

/** The marks in the branch of each target. */
export class KnownMarks {
  readonly #byTarget = new Map<string, Marks>();

  of(key: ObjectKey): Marks {
    const known = this.#byTarget.get(keyText(key)) ?? new Map();
    this.#byTarget.set(keyText(key), known);
    return known;
  }

  forget(key: ObjectKey): void {
    this.#byTarget.delete(keyText(key));
  }
}

/** The branch of a target: reads its files, and commits on top of the commit that was read. */
export class TargetBranch {
  readonly #git: GitRepository;
  readonly #remote: GitRemote | undefined;
  readonly #ref: string;

  private constructor(git: GitRepository, remote: GitRemote | undefined, branch: string) {
    this.#git = git;
    this.#remote = remote;
    this.#ref = `refs/heads/${branch}`;
  }

  static async open(options: TargetBranchOptions): Promise<TargetBranch> {
    const { url, mirrorPath, hostedFolder, credentials, git: repository } = options;
    const { git, remote } = await openLocation({
      ...{ url, mirrorPath, hostedFolder },
      ...(credentials === undefined ? {} : { credentials }),
      ...(repository === undefined ? {} : { repository }),
    });
    return new TargetBranch(git, remote, options.branch);
  }

  /** The current commit of the branch, fetched; `isEmpty` if the repository has no branch at all. */
  async head(signal: AbortSignal): Promise<{ readonly oid: Oid | undefined; readonly isEmpty: boolean }> {
    const remote = this.#remote;
    if (remote === undefined) {
      const oid = await this.#git.resolveRef(this.#ref);
      return { oid, isEmpty: oid === undefined && (await this.#git.listRefs(['refs/heads/'])).length === 0 };
    }
    const refs = await this.#git.listRemoteRefs(remote, ['refs/heads/'], signal);
    const there = refs.find(({ name }) => name === this.#ref)?.oid;
    if (there === undefined) return { oid: undefined, isEmpty: refs.length === 0 };
    const here = await this.#git.resolveRef(this.#ref);
    if (here === there) return { oid: here, isEmpty: false };
    await this.#git.fetch(remote, { refspecs: [`+${this.#ref}:${this.#ref}`], signal });
    return { oid: await this.#git.resolveRef(this.#ref), isEmpty: false };
  }

  /** True for a remote repository, of which the data folder has a mirror. */
  get isMirror(): boolean {
    return this.#remote !== undefined;
  }

  get git(): GitRepository {
    return this.#git;
  }

  /**
   * The files below a directory at a commit, by path from the root: ids, and the owners of folders. `marks` has what was read earlier,
   * and afterwards exactly the marks of this commit.
   */
  async present(head: Oid | undefined, directory: string, marks: Marks): Promise<Map<string, PresentFile>> {
    const present = new Map<string, PresentFile>();
    const top = directory === '/' ? '' : directory;
    const [stat] = head === undefined ? [] : await this.#git.statObjects([`${head}:${top}`]);
    if (stat?.type !== 'tree') return present;
    const files = await this.#list(`${head}:${top}`, directory);
    const lists = files.filter(({ path, mode }) => path.endsWith(`/${KUSTOMIZATION}`) && mode.startsWith('100'));
    await this.#readMarks([...new Set(lists.map(({ oid }) => oid))], marks);
    const listPaths = new Set(lists.map(({ path }) => path));
    await inSlices(files, ({ path, oid }) => {
      const owner = listPaths.has(path) ? marks.get(oid) : undefined;
      present.set(joinPath(top, path), owner == null ? { oid } : { oid, owner });
    });
    return present;
  }

  async #list(tree: string, directory: string): Promise<FileEntry[]> {
    try {
      return await this.#git.listFiles(tree, MAX_FILES);
    } catch (error) {
      if (!isSluiceError(error, 'LimitExceeded')) throw error;
      const message = `directory ${directory} of the target contains more than ${MAX_FILES} files; divide its packages among targets with separate directories`;
      throw new SluiceError('LimitExceeded', message, { cause: error });
    }
  }

  /** Reads the lists that are not cached yet, and drops those that no longer exist. */
  async #readMarks(oids: readonly Oid[], marks: Marks): Promise<void> {
    const there = new Set(oids);
    for (const oid of marks.keys()) if (!there.has(oid)) marks.delete(oid);
    const unknown = oids.filter((oid) => !marks.has(oid));
    for (let start = 0; start < unknown.length; start += LISTS_PER_READ) {
      const part = unknown.slice(start, start + LISTS_PER_READ);
      const sizes = await this.#git.statObjects(part);
      const readable = part.filter((_, index) => (sizes[index]?.size ?? MAX_LIST_BYTES) < MAX_LIST_BYTES);
      for (const oid of part) marks.set(oid, null);
      for (const object of await this.#git.readObjects(readable))
        if (object !== undefined) marks.set(object.oid, readOwner(object.data) ?? null);
    }
  }

  /**
   * Commits edits on top of a commit that was read. Throws Conflict, with nothing changed, if the branch is at another commit;
   * a local target changes by compare-and-swap, a remote one by an atomic push with the expected commit.
   */
  async commit(
    head: Oid | undefined,
    edits: ReadonlyMap<string, Uint8Array | null>,
    message: string,
    author: Signature,
    signal: AbortSignal,
  ): Promise<Oid> {
    const base = head === undefined ? undefined : (await this.#git.readCommit(head)).tree;
    const changes = new Map([...edits].map(([path, data]) => [path, data === null ? null : { data }]));
    const tree = await this.#git.editTree(base, changes);
    const parents = head === undefined ? [] : [head];
    const oid = await this.#git.writeCommit({ tree, parents, author, committer: author, message });
    const update: RefUpdate =
      head === undefined
        ? { type: 'create', ref: this.#ref, new: oid }
        : { type: 'update', ref: this.#ref, old: head, new: oid };
    // The mirror's own branch follows with the next fetch.
    if (this.#remote === undefined) await this.#git.transaction([update]);
    else await this.#git.push(this.#remote, [update], signal);
    return oid;
  }

  close(): Promise<void> {
    return this.#git.close();
  }
}

/** True for a lost race, which another attempt can win. What a rule of the server refuses, none can. */
export function isLostRace(error: unknown): boolean {
  const kind = error instanceof RefConflictError ? error.details?.kind : undefined;
  return kind === 'moved' || kind === 'locked';
}
