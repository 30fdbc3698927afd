import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { PullRequest } from '../../../src/forge/forge.ts';
import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import { awaitMerge, untilNextAttempt } from '../../pull-request/merged/awaited-merge.ts';
import { isGone } from '../../pull-request/reading/deleted-pulls.ts';
import type { SyncRequests } from '../../repository/sync-requests.ts';
import type { UserPulls } from '../reading/user-pulls.ts';
import type { MergedUserPull } from './merged-user-pull.ts';
import { type PackageMerge, publishUserMerge, type UserMergeContext } from './publish-user-merge.ts';
import { reportEndedMerge } from './report-ended-merge.ts';
import {
  commentOnMerge,
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
/**
 * After that, a merge does not hold up later ones whose commit is not on the main branch, since the branch may have been rewritten, or be another one,
 * or which fails although its host can be read. One that fails is tried again as often, and before each later one, so that their order is kept where
 * it can be.
 */
const MAX_WAIT_MS = 600_000;
/** So much of the time between two attempts that failed counts at most. */
const MAX_FAILING_MS = 120_000;
/** Merges whose commits do not arrive that are kept, the last ones. */
const MAX_OVERDUE = 500;

export interface ApplyContext extends Omit<UserMergeContext, 'isOfUser' | 'onPublished'>, ReportContext {
  readonly requests: Pick<SyncRequests, 'addOwn'> | undefined;
}

/**
 * Publishes what pull requests of users brought to the main branch, one after the other in the order of their merges: a later one would otherwise get
 * the lower number. What was published is found in Git, so that a repetition publishes nothing twice.
 */
export async function applyUserMerges(context: ApplyContext, pulls: UserPulls): Promise<ReconcileResult | undefined> {
  for (const pull of pulls.proposals.unreported()) await reportEndedMerge(context, pulls, pull);
  const overdue = await findOverdue(context, pulls);
  const wait = await publishInOrder(context, pulls, overdue);
  noteOverdue(context, pulls, overdue);
  const { unreported } = pulls;
  if (unreported !== undefined) await commentOnMerge(context, pulls, unreported.number, unreported.text);
  delete pulls.unreported;
  return wait;
}

async function publishInOrder(
  context: ApplyContext,
  pulls: UserPulls,
  overdue: Overdue,
): Promise<ReconcileResult | undefined> {
  const wanted = pulls.merged().filter((one) => !overdue.all.has(one) || overdue.found.has(one));
  const ordered = await inMergeOrder(context, wanted);
  const nowMs = context.clock.monotonic();
  if (ordered.every(({ failing }) => isOvertaken(failing) && nowMs - failing.lastMs < MAX_WAIT_MS)) return undefined;
  const unavailable: MergedUserPull[] = [];
  for (const [at, merged] of ordered.entries()) {
    const { pull } = merged;
    merged.attempts += 1;
    const onPublished = (one: PackageMerge) => reportMergedPackage(context, pull, one);
    const isOfUser = (one: PullRequest) => pulls.isOfUser(one);
    let merge: Awaited<ReturnType<typeof publishUserMerge>>;
    try {
      merge = await publishUserMerge({ ...context, isOfUser, onPublished }, pull, merged);
      if (merge !== 'waits' && merge !== 'missing') await reportUserMerge(context, pulls, merged, merge);
    } catch (error) {
      if (!isSluiceError(error, 'NotFound') || !(await isGone(context.forge, pull.number, context.signal))) {
        const later = ordered.slice(at + 1);
        const { forMs } = await noteFailure(context, merged, later);
        const isUnavailable = isSluiceError(error, 'Unavailable');
        if (isUnavailable && unavailable.length > 0) {
          // What fails concerns all, as a full disk does: none must lose its place when that ends.
          for (const one of [...unavailable, merged]) delete one.failing;
          for (const one of ordered) delete one.heldMs;
          throw error;
        }
        // A single failure may be one of the moment.
        const isLong = forMs > 0 && (later[0]?.heldMs ?? 0) >= MAX_WAIT_MS;
        if (!isLong && !isOvertaken(merged.failing)) throw error;
        if (isUnavailable) unavailable.push(merged);
        reportFailing(context, merged, error);
        continue;
      }
      if (merged.isGone !== true) {
        // A host that works badly for a moment must not lose a merge.
        merged.isGone = true;
        return { requeueAfter: GONE_MS, reason: `the host does not find ${pull.url}` };
      }
      reportGone(context, pull);
      pulls.settle(pull);
      continue;
    }
    delete merged.isGone;
    delete merged.failing;
    if (merge === 'waits') {
      // The later ones wait for it and for no commit, and must not be passed over as overdue when it is done.
      for (const one of ordered.slice(at)) delete one.waitsSince;
      // Their time runs too: it would add up otherwise, and later ones of proposals wait for each only so long.
      for (const one of ordered.slice(at + 1))
        if (one.foundMs === undefined && (await context.repository.index.isOnMain(one.pull.merged?.commit ?? '')))
          one.foundMs = context.clock.monotonic();
      return lookAgain(context, merged, merged.foundMs);
    }
    if (merge !== 'missing') pulls.settle(pull);
    else if (overdue.all.has(merged)) reportMissing(context, merged);
    else return awaitCommit(context, pulls, merged);
  }
  return undefined;
}

/** Rejects if the host cannot be read: what concerns all merges has to end before one of them is passed over. */
async function noteFailure(
  { forge, clock, signal }: ApplyContext,
  merged: MergedUserPull,
  later: readonly MergedUserPull[],
): Promise<NonNullable<MergedUserPull['failing']>> {
  await forge.listUpdated('1970-01-01T00:00:00Z', 1, signal);
  const lastMs = clock.monotonic();
  const { failing: before = { forMs: 0, lastMs } } = merged;
  // Without an attempt for longer, it may not have failed all the time.
  const addedMs = Math.min(lastMs - before.lastMs, MAX_FAILING_MS);
  merged.failing = { forMs: before.forMs + addedMs, lastMs };
  // Only the time of one that holds up others: several that fail must take no longer than one.
  if (!isOvertaken(before)) for (const one of later) one.heldMs = (one.heldMs ?? 0) + addedMs;
  return merged.failing;
}

function isOvertaken(failing: MergedUserPull['failing']): failing is NonNullable<MergedUserPull['failing']> {
  return failing !== undefined && failing.forMs >= MAX_WAIT_MS;
}

/** Merges that have waited too long to hold up others. */
interface Overdue {
  readonly all: ReadonlySet<MergedUserPull>;
  /** Those to look for on the main branch, which can take a walk along its history: their commits were fetched. */
  readonly found: ReadonlySet<MergedUserPull>;
  /** Commits that were fetched. */
  readonly of: string;
}

async function findOverdue(context: ApplyContext, pulls: UserPulls): Promise<Overdue> {
  const nowMs = context.clock.monotonic();
  const all = pulls.merged().filter(({ waitsSince = nowMs }) => nowMs - waitsSince > MAX_WAIT_MS);
  const commitOf = ({ pull }: MergedUserPull) => pull.merged?.commit ?? '';
  const stats = await context.repository.git.statObjects(all.map(commitOf).filter(isOid));
  const present = new Set(stats.flatMap((stat) => stat?.oid ?? []));
  const of = [...present].join();
  const arrived = all.filter((one) => present.has(commitOf(one)));
  for (const one of all) if (!arrived.includes(one)) reportMissing(context, one);
  const found = untilNextAttempt(pulls.overdue, of, nowMs) > 0 ? [] : arrived;
  return { all: new Set(all), found: new Set(found), of };
}

function noteOverdue({ clock }: ApplyContext, pulls: UserPulls, { all, found, of }: Overdue): void {
  const left = pulls.merged().filter((one) => all.has(one));
  if (left.length === 0) delete pulls.overdue;
  else if (left.some((one) => found.has(one)))
    pulls.overdue = awaitMerge(pulls.overdue, of, { firstMs: RETRY_MS, nowMs: clock.monotonic() });
  for (const { pull } of left.slice(0, -MAX_OVERDUE)) pulls.settle(pull);
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
