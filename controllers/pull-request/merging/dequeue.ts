import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { ForgeMerging } from '../../../src/forge/forge-merging.ts';
import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import { type KubernetesObject, keyOf, keyText } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import type { MergeAttempts } from './merge-attempts.ts';

/** A pull request of Sluice that must not be merged now. */
interface StoppedPull {
  /** What it publishes or delivers, which reports that. */
  readonly object: KubernetesObject;
  readonly url: string;
  /** Why, as a part of a sentence. */
  readonly reason: string;
  /** Users may have it merged, so that it stays where one of them has put it there. */
  readonly isUpToUsers: boolean;
  /** Removes it on the host. */
  remove(): ReturnType<ForgeMerging['dequeue']>;
}

interface DequeueContext {
  readonly events: EventDeduplicator;
  readonly attempts: MergeAttempts;
  readonly signal: AbortSignal;
}

/** The next attempt for one that stays there although it must not be merged. */
export const STAYS_QUEUED: ReconcileResult = {
  requeueAfter: 60_000,
  reason: 'a pull request stays in the merge queue of the host',
};

/**
 * Removes a pull request that Sluice has put into the merge queue of the host, for whatever reason it must not be merged now. `left`: it is not there
 * any more. `of-users`: it may stay there. One that stays against the rules, since another user has put it there or the host refuses that, is reported;
 * the caller tries again.
 */
export async function dequeue(
  { events, attempts, signal }: DequeueContext,
  { object, url, reason, isUpToUsers, remove }: StoppedPull,
): Promise<'left' | 'of-users' | 'stays'> {
  const stays = (why: string) => {
    const message = `${url} cannot be removed from the merge queue of the host (${why}), although ${reason}; remove it there`;
    events.record(object, 'Warning', 'NotDequeued', message, 'queue');
    return 'stays' as const;
  };
  try {
    const outcome = await remove();
    if (outcome === 'other' && !isUpToUsers) return stays('another user has put it there');
    attempts.noteQueued(keyText(keyOf(object)), undefined);
    if (outcome === 'other') return 'of-users';
    const message = `${url} was removed from the merge queue of the host: ${reason}`;
    if (outcome === 'removed') events.record(object, 'Normal', 'Dequeued', message, 'queue');
    return 'left';
  } catch (error) {
    if (!isSluiceError(error) || signal.aborted) throw error;
    return stays(messageOf(error));
  }
}
