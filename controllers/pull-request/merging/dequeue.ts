import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import { freezesAt, freezeText } from '../../../src/package/model/policy/approval-rules.ts';
import type { RevisionEvaluation } from '../../../src/package/store/revision-store.ts';
import type { PullRequests } from '../pull-requests.ts';
import type { ReviewContext, ReviewedProposal } from '../reviews/reviewed-proposal.ts';

/** The freezes in force for a proposal, in words; undefined without one. `now` is in milliseconds since the epoch. */
export function freezeOf({ policy }: Pick<RevisionEvaluation, 'policy'>, now: number): string | undefined {
  const freezes = freezesAt(policy.freezes, now);
  return freezes.length === 0 ? undefined : freezes.map(freezeText).join('; ');
}

/**
 * Removes a pull request that Sluice has put into the merge queue of the host, for this reason. Returns whether it is not there any more by that.
 * One that a user has put there stays.
 */
export async function dequeue(
  { store, events, signal }: Pick<ReviewContext, 'events' | 'store' | 'signal'>,
  { object, evaluation: { revision }, pull }: Pick<ReviewedProposal, 'evaluation' | 'object' | 'pull'>,
  pulls: PullRequests,
  reason: string,
): Promise<boolean> {
  let outcome: Awaited<ReturnType<typeof pulls.merging.dequeue>>;
  try {
    outcome = await pulls.merging.dequeue(pull.number, signal);
  } catch (error) {
    const message = `${pull.url} cannot be removed from the merge queue of the host (${messageOf(error)}), although ${reason}; remove it there`;
    if (isSluiceError(error)) events.record(object, 'Warning', 'NotDequeued', message, 'queue');
    throw error;
  }
  if (outcome === 'other') {
    const message = `${pull.url} stays in the merge queue of the host, where another user has put it, although ${reason}; remove it there`;
    events.record(object, 'Warning', 'NotDequeued', message, 'queue');
    return false;
  }
  pulls.queued.note(pull.number, false);
  store.repositoryOf(revision).noteQueued(revision.name, undefined);
  if (outcome === 'removed') {
    const message = `${pull.url} was removed from the merge queue of the host: ${reason}`;
    events.record(object, 'Normal', 'Dequeued', message, 'queue');
  }
  return true;
}
