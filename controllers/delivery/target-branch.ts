import type { PresentFile } from '../../src/delivery/branch-view.ts';
import { KUSTOMIZATION } from '../../src/delivery/kustomization.ts';
import { joinPath } from '../../src/delivery/path-rules.ts';
import { RefConflictError } from '../../src/git/errors.ts';
import type {
  GitCredentials,
  GitRemote,
  GitRepository,
  Oid,
  RefUpdate,
  Signature,
} from '../../src/git/git-repository.ts';
import { openLocation } from '../../src/git/open-location.ts';
import type { RepositoryOptions } from '../../src/git/open-repository.ts';

export interface TargetBranchOptions {
  readonly url: string;
  /** Without `refs/heads/`. */
  readonly branch: string;
  /** Where the mirror of a remote repository is kept; it may be deleted at any time. */
  readonly mirrorPath: string;
  /** Where repositories are that Sluice keeps itself. */
  readonly hostedFolder?: string;
  readonly credentials?: () => Promise<GitCredentials>;
  readonly git?: RepositoryOptions;
}

/** Larger lists are not ours: what we write has one line for a file of a package. */
const MAX_LIST = 1024 * 1024;

/** The branch that a target delivers into: what is on it now, and commits on top of what was read. */
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

  /** The commit that the branch is at, read here; `isEmpty` if there is no branch at all. */
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

  /** What is below a directory at a commit, by path from the root: ids, and the contents of `kustomization.yaml` files. */
  async present(head: Oid | undefined, directory: string): Promise<Map<string, PresentFile>> {
    const present = new Map<string, PresentFile>();
    const top = directory === '/' ? '' : directory;
    const [stat] = head === undefined ? [] : await this.#git.statObjects([`${head}:${top}`]);
    if (stat?.type !== 'tree') return present;
    const files = await this.#git.listFiles(`${head}:${top}`);
    const lists = files.filter(({ path, mode }) => path.endsWith(`/${KUSTOMIZATION}`) && mode.startsWith('100'));
    const sizes = await this.#git.statObjects(lists.map(({ oid }) => oid));
    const readable = lists.filter((_, index) => (sizes[index]?.size ?? MAX_LIST) < MAX_LIST);
    const objects = await this.#git.readObjects(readable.map(({ oid }) => oid));
    const contents = new Map(objects.flatMap((object) => (object === undefined ? [] : [[object.oid, object.data]])));
    const owned = new Set(readable.map(({ path }) => path));
    for (const { path, oid } of files) {
      const data = owned.has(path) ? contents.get(oid) : undefined;
      present.set(joinPath(top, path), data === undefined ? { oid } : { oid, data });
    }
    return present;
  }

  /**
   * Commits edits on top of a commit that was read. Throws Conflict, with nothing changed, if the branch is not there any more;
   * a target on this machine changes by compare-and-swap, a remote one by an atomic push that names the expected commit.
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
