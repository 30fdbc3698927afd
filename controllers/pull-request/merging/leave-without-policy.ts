import type { Check } from '../../../src/forge/forge.ts';
import { isPermanent } from '../../../src/forge/pause-after.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { PackageRevision } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { isBatchBranch } from '../batch/batch-name.ts';
import { READY_CHECK } from '../checks/checks.ts';
import type { CheckContext } from '../checks/queued-checks.ts';
import type { ShownPull } from '../shown-proposals.ts';
import { plainLine } from '../text/quote.ts';
import { writeChecks } from '../writing/write-pull.ts';
import { dequeue } from './dequeue.ts';
import type { MergeAttempts } from './merge-attempts.ts';

/** The reason where no policy applies. */
export const NO_POLICY = 'no policy with spec.review selects it';

interface Unreviewed {
  readonly object: Stored<PackageRevision>;
  readonly revision: Revision;
  /** Undefined where this process has not shown it. */
  readonly shown: ShownPull | undefined;
  /** Why no one policy says how it is reviewed. */
  readonly reason: string;
}

interface LeavingContext {
  readonly store: Pick<RevisionStore, 'repositoryOf'>;
  readonly events: EventDeduplicator;
  readonly attempts: MergeAttempts;
  readonly signal: AbortSignal;
}

/** Takes the pull request of a proposal that no one policy reviews any more out of the merge queue of the host, if Sluice has put it there. */
export async function leaveWithoutPolicy(
  { store, events, attempts, signal }: LeavingContext,
  { object, revision, shown, reason }: Unreviewed,
): Promise<'left' | 'of-users' | 'stays'> {
  const repository = store.repositoryOf(revision);
  if (shown === undefined) {
    // The policy that named the host has ended while no process ran.
    const note = repository.refusals.of(revision.name).find((refusal) => refusal.reason === 'MergeQueued');
    if (note === undefined) return 'left';
    const message = `Sluice cannot remove it from the merge queue of the host any more, although ${reason}; remove it there: ${note.message}`;
    events.record(object, 'Warning', 'NotDequeued', message, 'queue');
    return 'of-users';
  }
  const { pulls, number, url } = shown;
  if (!pulls.queued.has(number)) return 'left';
  if (!attempts.mayHaveQueued(keyText(keyOf(object)), number)) return 'of-users';
  const remove = async () => pulls.merging.dequeue(number, signal);
  const outcome = await dequeue({ events, attempts, signal }, { object, url, reason, isUpToUsers: true, remove });
  if (outcome !== 'left') return outcome;
  pulls.queued.note(number, false);
  repository.refusals.noteQueued(revision.name, undefined);
  return outcome;
}

/** Its pull request must not look as if a merge were accepted, although it can still be merged. A shared one gets this check of `releaseBatch`. */
export async function checkWithoutPolicy(
  context: CheckContext & Pick<LeavingContext, 'events'>,
  { object, revision, shown, reason }: Unreviewed,
): Promise<void> {
  if (shown === undefined) return;
  const message = `${shown.url} is not reviewed any more: ${withoutEffect(reason)}`;
  context.events.record(object, 'Warning', 'NotReviewed', message, 'policy');
  if (isBatchBranch(shown.branch)) return;
  try {
    await writeChecks(context, shown, revision.commit, [unreviewedCheck(reason, shown.url)], [revision]);
  } catch (error) {
    // What only an operator can change does not matter any more.
    if (!isPermanent(error)) throw error;
  }
}

/** The check of a pull request with this address that no one policy has reviewed, for this reason. */
export function unreviewedCheck(reason: string, url: string): Check {
  const message = withoutEffect(reason);
  return { name: READY_CHECK, state: 'pending', url, title: plainLine(message, 140), text: plainLine(message, 2000) };
}

function withoutEffect(reason: string): string {
  return `${reason}, so that a merge publishes nothing`;
}
