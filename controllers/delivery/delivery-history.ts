import type { PastDelivery } from '../../src/delivery/rollback/decide-rollbacks.ts';
import type { PackageName } from '../../src/delivery/status/target-deployment.ts';
import { type Delivery, readMessage, readTarget } from '../../src/delivery/tree/trailers.ts';
import type { GitRepository, Oid } from '../../src/git/git-repository.ts';

/** Commits of a branch that are searched for deliveries. */
const MAX_HISTORY_COMMITS = 1000;

/** A commit in the branch of a target by which Sluice delivered or removed packages. */
export interface DeliveryCommit extends Delivery {
  readonly commit: Oid;
  readonly parent: Oid | undefined;
  /** Milliseconds since the epoch, by the author: a rebase of the branch by another writer keeps it. */
  readonly time: number;
}

/** Why a walk ended: at the commit that it was to end at, at the first commit of the branch, or after `MAX_HISTORY_COMMITS`. */
export type WalkEnd = 'known' | 'first' | 'limit';

/** A delivery or removal of one package. */
export interface LastDelivery extends PastDelivery {
  readonly commit: Oid;
}

/**
 * The deliveries of a target, the newest first: a branch can have commits of other writers and of other targets, which are skipped. The
 * search ends at the commit `until`, and after `MAX_HISTORY_COMMITS` commits.
 */
export async function* deliveryCommits(
  git: Pick<GitRepository, 'readCommit'>,
  head: Oid,
  target: string,
  until?: Oid,
): AsyncGenerator<DeliveryCommit, WalkEnd> {
  let next: Oid | undefined = head;
  for (let read = 0; next !== undefined && next !== until; read += 1) {
    if (read >= MAX_HISTORY_COMMITS) return 'limit';
    const { oid, message, parents, author } = await git.readCommit(next);
    const [parent] = parents;
    next = parent;
    if (readTarget(message) !== target) continue;
    yield { ...readMessage(message), commit: oid, parent, time: author.time };
  }
  return next === undefined ? 'first' : 'known';
}

/**
 * The deliveries of a package by a target, the newest first, up to the last removal of the package. Any writer of the branch can write
 * their trailers: a commit that does not change the folder of the package is none.
 */
export async function packageHistory(
  git: Pick<GitRepository, 'readCommit' | 'statObjects'>,
  head: Oid,
  name: PackageName,
  target: string,
  folder: string,
): Promise<LastDelivery[]> {
  const history: LastDelivery[] = [];
  for await (const { parent, ...delivery } of packageDeliveries(git, head, name, target))
    if (await hasChanged(git, delivery.commit, parent, folder)) {
      history.push(delivery);
      if (delivery.revision === undefined) break;
    }
  return history;
}

async function hasChanged(
  git: Pick<GitRepository, 'statObjects'>,
  commit: Oid,
  parent: Oid | undefined,
  folder: string,
): Promise<boolean> {
  const [after, before] = await git.statObjects([`${commit}:${folder}`, `${parent ?? commit}:${folder}`]);
  return parent === undefined ? after !== undefined : after?.oid !== before?.oid;
}

/** The newest delivery or removal of a package by a target. */
export async function lastDelivery(
  git: Pick<GitRepository, 'readCommit'>,
  head: Oid,
  name: PackageName,
  target: string,
): Promise<LastDelivery | undefined> {
  for await (const { parent: _parent, ...delivery } of packageDeliveries(git, head, name, target)) return delivery;
  return undefined;
}

async function* packageDeliveries(
  git: Pick<GitRepository, 'readCommit'>,
  head: Oid,
  name: PackageName,
  target: string,
): AsyncGenerator<LastDelivery & { readonly parent: Oid | undefined }> {
  const isWanted = (one: PackageName) => one.repository === name.repository && one.package === name.package;
  for await (const { commit, parent, time, delivered, removed } of deliveryCommits(git, head, target)) {
    const found = delivered.find(isWanted);
    if (found !== undefined) yield { commit, parent, time, revision: found.revision, sourceCommit: found.sourceCommit };
    else if (removed.some(isWanted)) yield { commit, parent, time, revision: undefined, sourceCommit: undefined };
  }
}
