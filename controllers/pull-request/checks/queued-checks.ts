import type { Check, Forge } from '../../../src/forge/forge.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { PullRequests } from '../pull-requests.ts';
import type { Shown } from '../shown-proposals.ts';
import { READY_CHECK } from './checks.ts';

/**
 * Sets the checks of a proposal at the commits of a merge queue that would merge it. They are those of its own commit where the merge has the
 * content that was judged; other content was judged by no gate, and is not merged.
 */
export async function setQueuedChecks(
  {
    store,
    forge,
    signal,
  }: { readonly store: Pick<RevisionStore, 'repositoryOf'>; readonly forge: Forge; readonly signal: AbortSignal },
  revision: PackageRevision,
  checks: readonly Check[],
  queued: readonly string[],
): Promise<void> {
  const [own] = await store.repositoryOf(revision).git.statObjects([`${revision.commit}:${revision.path}`]);
  for (const commit of queued) {
    const tree = await forge.mergeQueue?.treeOf(commit, revision.path, signal);
    const isJudged = tree !== undefined && tree === own?.oid;
    await forge.setChecks(commit, isJudged ? checks : checks.map(otherContent), signal);
  }
}

function otherContent({ name }: Check): Check {
  const title =
    'The merge changes the package, so that its gates were not judged; remove it from the queue, and update the proposal';
  return { name, state: name === READY_CHECK ? 'failure' : 'pending', title };
}

/** Which proposals wait in merge queues, as they were last read. */
export class QueuedProposals {
  /** Those with something in the queue. */
  readonly #active = new WeakSet<PullRequests>();

  /**
   * Takes over which of the shown proposals wait for checks; returns those that have changed. Reads the queue only if there was something in
   * it, or on request: pull requests change when they are put there.
   */
  async read(
    pulls: PullRequests,
    shown: readonly Shown[],
    isRequested: boolean,
    signal: AbortSignal,
  ): Promise<readonly Shown[]> {
    const { mergeQueue } = pulls.forge;
    if (mergeQueue === undefined || !(isRequested || this.#active.has(pulls))) return [];
    const waiting = await mergeQueue.waiting(pulls.base, signal);
    if (waiting.length > 0) this.#active.add(pulls);
    else this.#active.delete(pulls);
    const changed: Shown[] = [];
    for (const one of shown) {
      if (one.pulls !== pulls) continue;
      const queued = waiting.filter(({ number }) => number === one.number).map(({ commit }) => commit);
      if (`${one.queued ?? []}` === `${queued}`) continue;
      one.queued = queued;
      if (queued.length === 0) continue;
      delete one.checks;
      changed.push(one);
    }
    return changed;
  }
}
