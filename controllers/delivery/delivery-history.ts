import type { PastDelivery } from '../../src/delivery/rollback/earlier-revision.ts';
import { packageKey } from '../../src/delivery/selection/select-revisions.ts';
import type { PackageName } from '../../src/delivery/status/target-deployment.ts';
import { type Delivery, readMessage, readTarget } from '../../src/delivery/tree/trailers.ts';
import { createPacer } from '../../src/foundation/concurrency/in-slices.ts';
import type { GitRepository, Oid } from '../../src/git/git-repository.ts';

/** Commits of a branch that are searched for deliveries. */
const MAX_HISTORY_COMMITS = 1000;
/** Packages whose folders are compared in one batch. */
const FOLDERS_PER_READ = 1000;

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

/** A package whose deliveries are searched. */
export interface PackageSearch {
  readonly name: PackageName;
  /** From the root of the repository. */
  readonly folder: string;
  /** Receives the deliveries, the newest first. Returns true once older ones are not needed. */
  add(delivery: LastDelivery): boolean;
}

/**
 * The deliveries of a target, the newest first: a branch can have commits of other writers and of other targets, which are skipped. The
 * search ends at the commit `until`, and after `MAX_HISTORY_COMMITS` commits. A message of thousands of packages takes milliseconds to
 * parse, so the walk yields to the event loop.
 */
export async function* deliveryCommits(
  git: Pick<GitRepository, 'readCommit'>,
  head: Oid,
  target: string,
  { until, signal }: { readonly until?: Oid | undefined; readonly signal?: AbortSignal } = {},
): AsyncGenerator<DeliveryCommit, WalkEnd> {
  const pause = createPacer();
  let next: Oid | undefined = head;
  for (let read = 0; next !== undefined && next !== until; read += 1) {
    if (read >= MAX_HISTORY_COMMITS) return 'limit';
    await pause();
    signal?.throwIfAborted();
    const { oid, message, parents, author } = await git.readCommit(next);
    const [parent] = parents;
    next = parent;
    if (readTarget(message) !== target) continue;
    yield { ...readMessage(message), commit: oid, parent, time: author.time };
  }
  return next === undefined ? 'first' : 'known';
}

/**
 * Gives each search the deliveries of its package by a target, in one walk for all of them, which ends when no search needs more. Any
 * writer of the branch can write their trailers: a commit that does not change the folder of the package is none.
 */
export async function searchDeliveries(
  git: Pick<GitRepository, 'readCommit' | 'statObjects'>,
  head: Oid,
  target: string,
  searches: Iterable<PackageSearch>,
  signal: AbortSignal,
): Promise<void> {
  const open = new Map(Array.from(searches, (one) => [packageKey(one.name), one]));
  if (open.size === 0) return;
  for await (const delivery of deliveryCommits(git, head, target, { signal })) {
    const found = [...deliveriesIn(delivery, open)];
    for (let start = 0; start < found.length; start += FOLDERS_PER_READ) {
      signal.throwIfAborted();
      const part = found.slice(start, start + FOLDERS_PER_READ);
      const folders = part.map(([key]) => open.get(key)?.folder ?? '');
      const changed = await changedFolders(git, delivery, folders);
      for (const [index, [key, one]] of part.entries())
        if (changed[index] === true && open.get(key)?.add(one) === true) open.delete(key);
    }
    if (open.size === 0) return;
  }
}

/** What a commit delivered or removed of these packages, by `packageKey`. */
function deliveriesIn(
  { commit, time, delivered, removed }: DeliveryCommit,
  packages: ReadonlyMap<string, unknown>,
): Map<string, LastDelivery> {
  const found = new Map<string, LastDelivery>();
  const add = (name: PackageName, revision: number | undefined, sourceCommit: string | undefined) => {
    const key = packageKey(name);
    if (packages.has(key) && !found.has(key)) found.set(key, { commit, time, revision, sourceCommit });
  };
  for (const one of delivered) add(one, one.revision, one.sourceCommit);
  for (const one of removed) add(one, undefined, undefined);
  return found;
}

/** Whether a commit changed each of these folders. */
async function changedFolders(
  git: Pick<GitRepository, 'statObjects'>,
  { commit, parent }: DeliveryCommit,
  folders: readonly string[],
): Promise<boolean[]> {
  const after = await git.statObjects(folders.map((folder) => `${commit}:${folder}`));
  if (parent === undefined) return after.map((stat) => stat !== undefined);
  const before = await git.statObjects(folders.map((folder) => `${parent}:${folder}`));
  return after.map((stat, index) => stat?.oid !== before[index]?.oid);
}

/** The newest delivery or removal of a package by a target. */
export async function lastDelivery(
  git: Pick<GitRepository, 'readCommit'>,
  head: Oid,
  name: PackageName,
  target: string,
): Promise<LastDelivery | undefined> {
  const key = packageKey(name);
  for await (const delivery of deliveryCommits(git, head, target)) {
    const found = deliveriesIn(delivery, new Map([[key, name]])).get(key);
    if (found !== undefined) return found;
  }
  return undefined;
}
