import type { Check, Forge } from '../../../src/forge/forge.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { PullRequests } from '../pull-requests.ts';
import type { ShownPull } from '../shown-proposals.ts';
import { READY_CHECK } from './checks.ts';

export interface CheckContext {
  readonly store: Pick<RevisionStore, 'repositoryOf'>;
  readonly signal: AbortSignal;
}

/**
 * Sets the checks of a pull request at the commits of a merge queue that would merge it. They are those of its own head where the merge has the
 * content of its packages that was judged; other content was judged by no gate, and is not merged.
 */
export async function setQueuedChecks(
  { store, signal }: CheckContext,
  forge: Forge,
  packages: readonly PackageRevision[],
  checks: readonly Check[],
  queued: readonly string[],
): Promise<void> {
  for (const commit of queued) {
    let isJudged = packages.length > 0;
    for (const revision of packages) {
      const [own] = await store.repositoryOf(revision).git.statObjects([`${revision.commit}:${revision.path}`]);
      const tree = await forge.mergeQueue?.treeOf(commit, revision.path, signal);
      isJudged &&= tree !== undefined && tree === own?.oid;
    }
    await forge.setChecks(commit, isJudged ? checks : checks.map(otherContent), signal);
  }
}

function otherContent({ name }: Check): Check {
  const title =
    'The merge changes the package, so that its gates were not judged; remove it from the queue, and update the proposal';
  return { name, state: name === READY_CHECK ? 'failure' : 'pending', title };
}

/** Which pull requests wait in merge queues, as they were last read. */
export class QueuedPulls {
  /** Those with something in the queue, and those whose queue is to be read. */
  readonly #active = new WeakSet<PullRequests>();

  /** The next `read` reads the queue, and if that fails, the one after it. */
  request(pulls: PullRequests): void {
    this.#active.add(pulls);
  }

  /**
   * Takes over which of the shown pull requests wait for checks, or have left the queue; returns those that have changed. Reads the queue only if
   * there was something in it, or on request: pull requests change when they are put there.
   */
  async read(pulls: PullRequests, shown: Iterable<ShownPull>, signal: AbortSignal): Promise<readonly ShownPull[]> {
    const { mergeQueue } = pulls.forge;
    if (mergeQueue === undefined || !(this.#active.has(pulls) || pulls.queued.size > 0)) return [];
    const { merges, isComplete } = await mergeQueue.waiting(pulls.base, signal);
    if (merges.length === 0 && isComplete) this.#active.delete(pulls);
    const left = await pulls.queued.readLeft(pulls.forge, new Set(merges.map(({ number }) => number)), signal);
    const changed = new Set<ShownPull>();
    for (const one of shown) {
      if (one.pulls !== pulls) continue;
      // What has waited for that is written.
      if (left.has(one.number)) changed.add(one);
      const queued = merges.filter(({ number }) => number === one.number).map(({ commit }) => commit);
      if (queued.length > 0 && pulls.queued.note(one.number, true)) changed.add(one);
      if (`${one.queued ?? []}` === `${queued}`) continue;
      one.queued = queued;
      if (queued.length === 0) continue;
      delete one.checks;
      changed.add(one);
    }
    return [...changed];
  }
}
