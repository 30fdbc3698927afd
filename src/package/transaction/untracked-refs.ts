import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { GitRemote, GitRepository, Oid, RefUpdate } from '../../git/git-repository.ts';
import type { TrackedRefs } from './tracked-refs.ts';

export interface UntrackedRefsOptions {
  readonly git: GitRepository;
  /** Set if `git` is a mirror. */
  readonly remote: GitRemote | undefined;
  readonly locks: Pick<TrackedRefs, 'mutex' | 'fetches'>;
}

/** Branches and pull requests that are no revisions. Writes of revisions continue during a fetch of one. */
export class UntrackedRefs {
  readonly #git: GitRepository;
  readonly #remote: GitRemote | undefined;
  readonly #locks: UntrackedRefsOptions['locks'];

  constructor({ git, remote, locks }: UntrackedRefsOptions) {
    this.#git = git;
    this.#remote = remote;
    this.#locks = locks;
  }

  /** The head of a branch, fetched; undefined if the remote has none. */
  async readBranch(branch: string, signal: AbortSignal): Promise<Oid | undefined> {
    const ref = `refs/heads/${branch}`;
    const here = await this.#git.resolveRef(ref);
    const remote = this.#remote;
    if (remote === undefined) return here;
    const there = (await this.#git.listRemoteRefs(remote, [ref], signal)).find(({ name }) => name === ref)?.oid;
    if (there === undefined || there === here) return there;
    await this.#locks.fetches.run(() => this.#fetch(remote, `+${ref}:${ref}`, signal));
    return there;
  }

  /**
   * Changes a branch, at the remote and in the mirror unless a fetch was faster there. Rejects with Conflict, with nothing changed, if its head is not
   * the expected one.
   */
  writeBranch(update: RefUpdate, signal: AbortSignal): Promise<void> {
    return this.#locks.mutex.run(async () => {
      if (this.#remote !== undefined) await this.#git.push(this.#remote, [update], signal);
      try {
        await this.#git.transaction([update]);
      } catch (error) {
        if (this.#remote === undefined || !isSluiceError(error, 'Conflict')) throw error;
      }
    });
  }

  /**
   * Fetches the head of a pull request, also of a fork, under a name of its own, and returns its commit; undefined if the remote has none.
   * `forgetPull` removes it.
   */
  async fetchPull(number: number, signal: AbortSignal): Promise<Oid | undefined> {
    const source = `refs/pull/${number}/head`;
    if (this.#remote === undefined) return this.#git.resolveRef(source);
    const [remote, local] = [this.#remote, pullRef(number)];
    return this.#locks.fetches.run(async () => {
      try {
        await this.#fetch(remote, `+${source}:${local}`, signal);
      } catch (error) {
        if (!isSluiceError(error, 'NotFound')) throw error;
        return undefined;
      }
      return this.#git.resolveRef(local);
    });
  }

  /** Numbers of the pull requests that were fetched, and are not forgotten. */
  async fetchedPulls(): Promise<readonly number[]> {
    if (this.#remote === undefined) return [];
    return (await this.#git.listRefs([PULLS])).map(({ name }) => Number(name.slice(PULLS.length)));
  }

  async forgetPull(number: number): Promise<void> {
    const ref = pullRef(number);
    const old = await this.#git.resolveRef(ref);
    if (this.#remote === undefined || old === undefined) return;
    try {
      await this.#git.transaction([{ type: 'delete', ref, old }]);
    } catch (error) {
      // Another one was faster: what it has fetched, it forgets.
      if (!isSluiceError(error, 'Conflict')) throw error;
    }
  }

  async #fetch(remote: GitRemote, refspec: string, signal: AbortSignal): Promise<void> {
    const { mutex } = this.#locks;
    await this.#git.fetch(remote, { refspecs: [refspec], signal, exclusively: (fetch) => mutex.run(fetch) });
  }
}

/** In the mirror only, where no fetch of the other refs removes it. */
const PULLS = 'refs/pulls/';

function pullRef(number: number): string {
  return `${PULLS}${number}`;
}
