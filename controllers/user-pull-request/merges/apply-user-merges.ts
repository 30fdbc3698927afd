import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { PullRequest } from '../../../src/forge/forge.ts';
import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import { isGone } from '../../pull-request/reading/deleted-pulls.ts';
import type { SyncRequests } from '../../repository/sync-requests.ts';
import type { UserPulls } from '../reading/user-pulls.ts';
import type { CommentFailure } from './merge-comments.ts';
import { expectReadable, MergeFailures, restsAfterFailure } from './merge-failures.ts';
import type { MergedUserPull } from './merged-user-pull.ts';
import { findOverdue, noteOverdue, type Overdue } from './overdue-merges.ts';
import { type PackageMerge, publishUserMerge, type UserMergeContext } from './publish-user-merge.ts';
import { reportEndedMerges } from './report-ended-merge.ts';
import {
  type ReportContext,
  reportFailing,
  reportGone,
  reportMergedPackage,
  reportMissing,
  reportUserMerge,
} from './report-user-merge.ts';

/** Until a merge is looked for again in what was fetched: at first, and later, where it takes another fetch. */
const FETCH_MS = 1000;
const RETRY_MS = 10_000;
/** Until a merged pull request is looked for again that the host does not find. */
const GONE_MS = 60_000;

export interface ApplyContext extends Omit<UserMergeContext, 'isOfUser' | 'onPublished'>, ReportContext {
  readonly requests: Pick<SyncRequests, 'addOwn'> | undefined;
}

/**
 * Publishes what pull requests of users brought to the main branch, one after the other in the order of their merges: a later one would otherwise get
 * the lower number. What was published is found in Git, so that a repetition publishes nothing twice.
 */
export async function applyUserMerges(context: ApplyContext, pulls: UserPulls): Promise<ReconcileResult | undefined> {
  await reportEndedMerges(context, pulls);
  const overdue = await findOverdue(context, pulls);
  const failures = new MergeFailures<MergedUserPull>();
  let wait: ReconcileResult | undefined;
  let uncommented: CommentFailure | undefined;
  try {
    wait = await publishInOrder(context, pulls, overdue, failures);
    reportPassed(context, failures);
    noteOverdue(context, pulls, overdue);
  } finally {
    pulls.comments.endMissed();
    uncommented = await pulls.comments.write(context);
  }
  if (wait === undefined && uncommented !== undefined) throw uncommented.error;
  return wait;
}

function reportPassed(context: ApplyContext, failures: MergeFailures<MergedUserPull>): void {
  for (const [merged, error] of failures.takePassed()) reportFailing(context, merged, error);
}

async function publishInOrder(
  context: ApplyContext,
  pulls: UserPulls,
  overdue: Overdue,
  failures: MergeFailures<MergedUserPull>,
): Promise<ReconcileResult | undefined> {
  const wanted = pulls.merged().filter((one) => !overdue.all.has(one) || overdue.found.has(one));
  const ordered = await inMergeOrder(context, wanted);
  if (ordered.every((one) => restsAfterFailure(one, context.clock.monotonic()))) return undefined;
  for (const [at, merged] of ordered.entries()) {
    const outcome = await attempt(context, pulls, merged);
    if (typeof outcome === 'object') {
      await expectReadable(context.forge, outcome.error, context.signal);
      const failure = { ...outcome, nowMs: context.clock.monotonic() };
      if (failures.note(ordered, merged, failure)) continue;
      reportPassed(context, failures);
      throw outcome.error;
    }
    if (outcome === 'gone') {
      // A host that works badly for a moment must not lose a merge.
      const isFirst = merged.isGone !== true;
      merged.isGone = true;
      if (isFirst) return { requeueAfter: GONE_MS, reason: `the host does not find ${merged.pull.url}` };
      reportGone(context, merged.pull);
      pulls.settle(merged.pull);
      continue;
    }
    delete merged.isGone;
    delete merged.failing;
    if (outcome === 'waits') return await awaitOther(context, merged, ordered.slice(at + 1));
    if (outcome === 'done') {
      pulls.settle(merged.pull);
      reportPassed(context, failures);
      // Before the next one is published: after a kill, the comment about the last one alone is missing. The host may take none for now.
      await pulls.comments.write(context);
    } else if (overdue.all.has(merged)) reportMissing(context, merged);
    else return awaitCommit(context, pulls, merged);
  }
  return undefined;
}

/**
 * Returns `waits` for one that depends on something else than its commit, `missing` if its commit is not on the main branch, and `gone` if the host
 * does not have the pull request. Failures of this merge are returned.
 */
async function attempt(
  context: ApplyContext,
  pulls: UserPulls,
  merged: MergedUserPull,
): Promise<'done' | 'waits' | 'missing' | 'gone' | { readonly error: unknown }> {
  const { pull } = merged;
  merged.attempts += 1;
  const onPublished = (one: PackageMerge) => reportMergedPackage(context, pull, one);
  const isOfUser = (one: PullRequest) => pulls.isOfUser(one);
  try {
    const merge = await publishUserMerge({ ...context, isOfUser, onPublished }, pull, merged);
    if (merge === 'waits' || merge === 'missing') return merge;
    await reportUserMerge(context, pulls, merged, merge);
    return 'done';
  } catch (error) {
    const isOfPull = isSluiceError(error, 'NotFound') && (await isGone(context.forge, pull.number, context.signal));
    return isOfPull ? 'gone' : { error };
  }
}

/** Hosts report times in seconds, and a merge queue merges several at once: those of the same second have the order of the main branch. */
async function inMergeOrder(
  { repository: { index } }: Pick<ApplyContext, 'repository'>,
  byTime: readonly MergedUserPull[],
): Promise<readonly MergedUserPull[]> {
  const ordered: MergedUserPull[] = [];
  for (const one of byTime) {
    let place = ordered.length;
    for (let before = ordered[place - 1]; before !== undefined; before = ordered[place - 1]) {
      if (before.pull.closedAt !== one.pull.closedAt || !(await isBefore(one.pull, before.pull))) break;
      place -= 1;
    }
    ordered.splice(place, 0, one);
  }
  return ordered;

  async function isBefore({ merged }: PullRequest, { merged: later }: PullRequest): Promise<boolean> {
    const [commit, head] = [merged?.commit ?? '', later?.commit ?? ''];
    return commit !== head && (await index.isOnMain(head)) && (await index.isOnMain(commit, head));
  }
}

/** `merged` waits for something else than its commit. */
async function awaitOther(
  context: ApplyContext,
  merged: MergedUserPull,
  later: readonly MergedUserPull[],
): Promise<ReconcileResult> {
  // The later ones wait for it and for no commit, and must not be passed over as overdue when it is done.
  for (const one of [merged, ...later]) delete one.waitsSince;
  // Their time runs too: it would add up otherwise, and later ones of proposals wait for each only so long.
  for (const one of later)
    if (one.foundMs === undefined && (await context.repository.index.isOnMain(one.pull.merged?.commit ?? '')))
      one.foundMs = context.clock.monotonic();
  return lookAgain(context, merged, merged.foundMs);
}

function awaitCommit(context: ApplyContext, pulls: UserPulls, merged: MergedUserPull): ReconcileResult {
  const now = context.clock.monotonic();
  // Later ones wait as well, so that many that never arrive take no longer than one.
  for (const one of pulls.merged()) one.waitsSince ??= now;
  return lookAgain(context, merged, merged.waitsSince);
}

/** Requests a sync now and then, which wakes this controller too. `sinceMs`: when the wait began. */
function lookAgain(
  { clock, requests, repository }: ApplyContext,
  merged: MergedUserPull,
  sinceMs: number | undefined,
): ReconcileResult {
  const now = clock.monotonic();
  const { syncedAt = Number.NEGATIVE_INFINITY } = merged;
  if (now - syncedAt >= RETRY_MS) {
    merged.syncedAt = now;
    requests?.addOwn({ namespace: repository.namespace, name: repository.repository }, 'branches');
  }
  return {
    requeueAfter: now - (sinceMs ?? now) < RETRY_MS ? FETCH_MS : RETRY_MS,
    reason: 'the main branch has to be read',
  };
}
