import { joinPath } from '../../../src/delivery/path-rules.ts';
import { readTarget } from '../../../src/delivery/tree/trailers.ts';
import type { Commit, GitRemote, GitRepository, Oid, RefUpdate, Signature } from '../../../src/git/git-repository.ts';
import { mergeBase } from '../../../src/git/objects/merge-base.ts';

/** Merges of the branch of a target into that of its pull request. */
const MAX_MERGES = 100;
const TREE_TRAILER = 'Sluice-Delivery-Tree';

/** What a delivery by pull request proposes. */
export interface ProposedDelivery {
  /** Head of the branch of the target. */
  readonly base: Oid;
  /** The whole tree, with the deliveries in it. */
  readonly tree: Oid;
  readonly message: string;
  /** The name of the target in its commits. */
  readonly target: string;
  /** The directory that the target delivers to; empty for the root. */
  readonly directory: string;
}

/** The branch that a target has for its pull request. Holds one commit of Sluice, on top of one of the branch of the target. */
export class DeliveryBranch {
  readonly name: string;
  readonly #git: GitRepository;
  readonly #remote: GitRemote | undefined;
  readonly #ref: string;

  constructor(git: GitRepository, remote: GitRemote | undefined, name: string) {
    this.#git = git;
    this.#remote = remote;
    this.name = name;
    this.#ref = `refs/heads/${name}`;
  }

  /** Its present head, fetched. */
  async head(signal: AbortSignal): Promise<Oid | undefined> {
    const remote = this.#remote;
    if (remote === undefined) return this.#git.resolveRef(this.#ref);
    const [there] = await this.#git
      .listRemoteRefs(remote, [this.#ref], signal)
      .then((refs) => refs.filter(({ name }) => name === this.#ref));
    if (there === undefined) return undefined;
    const here = await this.#git.resolveRef(this.#ref);
    if (here !== there.oid) await this.#git.fetch(remote, { refspecs: [`+${this.#ref}:${this.#ref}`], signal });
    return there.oid;
  }

  /** What a head of the branch is. */
  async inspect(
    head: Oid,
    { base, tree, target, directory }: ProposedDelivery,
  ): Promise<{
    readonly isOwn: boolean;
    readonly isCurrent: boolean;
    readonly isUpToDate: boolean;
    readonly by: string;
  }> {
    const commit = await this.#git.readCommit(head);
    const isCurrent = await this.#delivers(commit, base, tree, directory);
    return {
      // A commit without a change of users is as good as one of Sluice.
      isOwn: isCurrent || isOwnCommit(commit, target),
      isCurrent,
      isUpToDate: commit.parents.includes(base),
      by: `${commit.author.name} <${commit.author.email}>`,
    };
  }

  /** Sets it to one commit with the proposal. Throws Conflict, with nothing changed, if its head is not `old`. */
  async push(old: Oid | undefined, proposed: ProposedDelivery, author: Signature, signal: AbortSignal): Promise<Oid> {
    const { base, tree } = proposed;
    const message = `${proposed.message.trimEnd()}\n${TREE_TRAILER}: ${tree}\n`;
    const commit = await this.#git.writeCommit({ tree, parents: [base], author, committer: author, message });
    await this.#change(
      old === undefined
        ? { type: 'create', ref: this.#ref, new: commit }
        : { type: 'update', ref: this.#ref, old, new: commit },
      signal,
    );
    return commit;
  }

  async remove(old: Oid, signal: AbortSignal): Promise<void> {
    await this.#change({ type: 'delete', ref: this.#ref, old }, signal);
  }

  async #change(update: RefUpdate, signal: AbortSignal): Promise<void> {
    if (this.#remote === undefined) await this.#git.transaction([update]);
    else await this.#git.push(this.#remote, [update], signal);
  }

  /**
   * True for a commit of Sluice with what is desired, and for merges of the branch of the target into it, as hosts offer them: all of them have a commit
   * of that branch and the directory. Then a merge by any method changes the directory alone. Of other commits with such a tree it can take changes of
   * the branch of the target back, which they have in their history.
   */
  async #delivers(head: Commit, base: Oid, desired: Oid, directory: string): Promise<boolean> {
    const [wanted] = await this.#git.statObjects([`${desired}:${directory}`]);
    const edit = wanted === undefined ? null : ({ oid: wanted.oid, mode: '040000' } as const);
    let commit = head;
    let onto = base;
    for (let count = 0; count < MAX_MERGES; count += 1) {
      const [first, merged, ...others] = commit.parents;
      if (first === undefined || others.length > 0) return false;
      const from = merged ?? first;
      if ((await mergeBase(this.#git, from, onto)) !== from) return false;
      const expected = directory === '' ? desired : await this.#git.editTree(from, new Map([[directory, edit]]));
      if (commit.tree !== expected) return false;
      if (merged === undefined) return true;
      onto = from;
      commit = await this.#git.readCommit(first);
    }
    return false;
  }
}

/** The name of the branch of a target: that of targets of different namespaces never collide. */
export function deliveryBranchName({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return namespace === 'default' ? joinPath('sluice/delivery', name) : `sluice/delivery-${namespace}/${name}`;
}

/** The id of the directory in a tree or commit; empty where it does not have it. */
export async function contentOf(git: GitRepository, tree: Oid, directory: string): Promise<string> {
  const [stat] = await git.statObjects([`${tree}:${directory}`]);
  return stat?.oid ?? '';
}

/** True for a commit that Sluice made for a target, as it was made: an amended one has another tree. */
function isOwnCommit({ message, tree, parents }: Commit, target: string): boolean {
  const [, recorded] = new RegExp(`^${TREE_TRAILER}: ([0-9a-f]{40})$`, 'm').exec(message) ?? [];
  return parents.length === 1 && readTarget(message) === target && recorded === tree;
}
