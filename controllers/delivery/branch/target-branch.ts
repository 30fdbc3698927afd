import { RefConflictError } from '../../../src/git/errors.ts';
import type {
  GitCredentials,
  GitRemote,
  GitRepository,
  Oid,
  RefUpdate,
  Signature,
} from '../../../src/git/git-repository.ts';
import { openLocation } from '../../../src/git/open/open-location.ts';
import type { RepositoryOptions } from '../../../src/git/open/open-repository.ts';

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

/** The branch of a target: commits on top of the commit that was read. */
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

  /**
   * True if the repository does not have a commit any more, as after a squash or a rebase of the branch and the collection of garbage, or
   * in a new mirror. One that only the branch has lost counts as present: its trees and its history can be read, and to find out whether
   * the head descends from it takes a walk through all commits between them. A commit without the directory is lost too: another writer moved
   * the folders to where the target delivers them now.
   */
  async hasLost(commit: Oid | undefined, head: Oid | undefined, directory: string): Promise<boolean> {
    if (commit === undefined || commit === head) return false;
    const [stat, folder] = await this.#git.statObjects([commit, `${commit}:${directory}`]);
    return stat?.type !== 'commit' || folder?.type !== 'tree';
  }

  /** True for a remote repository, of which the data folder has a mirror. */
  get isMirror(): boolean {
    return this.#remote !== undefined;
  }

  get git(): GitRepository {
    return this.#git;
  }

  /** Undefined for a repository on this machine, which is no mirror. */
  get remote(): GitRemote | undefined {
    return this.#remote;
  }

  /** The tree of a commit with edits. */
  async treeWith(head: Oid | undefined, edits: ReadonlyMap<string, Uint8Array | null>): Promise<Oid> {
    const base = head === undefined ? undefined : (await this.#git.readCommit(head)).tree;
    if (base !== undefined && edits.size === 0) return base;
    // A file that another writer made executable does not stay so.
    const changes = new Map([...edits].map(([path, data]) => [path, data && ({ data, mode: '100644' } as const)]));
    return this.#git.editTree(base, changes);
  }

  /**
   * Commits edits on top of a commit that was read. Throws Conflict, with nothing changed, if the branch is at another commit;
   * a local target changes by compare-and-swap, a remote one by an atomic push with the expected commit. `isPermitted` is called last of all
   * before that; without a permission nothing changes, and the result is undefined.
   */
  async commit(
    head: Oid | undefined,
    edits: ReadonlyMap<string, Uint8Array | null>,
    message: string,
    author: Signature,
    signal: AbortSignal,
    isPermitted: () => Promise<boolean> = async () => true,
  ): Promise<Oid | undefined> {
    const tree = await this.treeWith(head, edits);
    const parents = head === undefined ? [] : [head];
    const oid = await this.#git.writeCommit({ tree, parents, author, committer: author, message });
    const update: RefUpdate =
      head === undefined
        ? { type: 'create', ref: this.#ref, new: oid }
        : { type: 'update', ref: this.#ref, old: head, new: oid };
    if (!(await isPermitted())) return undefined;
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
