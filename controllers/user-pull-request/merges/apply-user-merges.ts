import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { PullRequest } from '../../../src/forge/forge.ts';
import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import { digest } from '../../../src/foundation/text/canonical-json.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import { wasPublished } from '../../../src/package/plan/create/merged-package.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import type { Repository } from '../../../src/resource/kinds/porch/repository.ts';
import type { Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { awaitMerge, untilNextAttempt } from '../../pull-request/merged/awaited-merge.ts';
import { hostMerges } from '../../pull-request/merged/host-merges.ts';
import { eventsOfMerge } from '../../pull-request/merged/reported-merges.ts';
import { isGone } from '../../pull-request/reading/deleted-pulls.ts';
import { inlineCode, plainLine } from '../../pull-request/text/quote.ts';
import type { SyncRequests } from '../../repository/sync-requests.ts';
import { keyAt } from '../judging/read-user-pull.ts';
import type { UserPulls } from '../reading/user-pulls.ts';
import { describeUserMerge } from './describe-user-merge.ts';
import { MAX_UNREPORTED_MS, type MergedUserPull } from './merged-user-pull.ts';
import { type PackageMerge, publishUserMerge, type UserMerge, type UserMergeContext } from './publish-user-merge.ts';
import { reportEndedMerge } from './report-ended-merge.ts';

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
/** Merges of which a new process reads whether they were reported: so many. */
const MAX_SEARCHED = 50;
const MAX_ERROR_CHARACTERS = 500;
const UNKNOWN_REPORT = 'may have changed more packages, which are not published';

export interface ApplyContext extends Omit<UserMergeContext, 'isOfUser' | 'onPublished'> {
  readonly client: Client;
  readonly events: EventDeduplicator;
  readonly object: Stored<Repository>;
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
  if (unreported !== undefined) await comment(context, pulls, unreported.number, unreported.text);
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
    const onPublished = (one: PackageMerge) => reportPackage(context, pull, one);
    const isOfUser = (one: PullRequest) => pulls.isOfUser(one);
    let merge: Awaited<ReturnType<typeof publishUserMerge>>;
    try {
      merge = await publishUserMerge({ ...context, isOfUser, onPublished }, pull, merged);
      if (merge !== 'waits' && merge !== 'missing') await report(context, pulls, merged, merge);
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

/** Once: its host may be at fault, so that it is tried again. */
function reportFailing(context: ApplyContext, merged: MergedUserPull, error: unknown): void {
  if (merged.isReported === true) return;
  merged.isReported = true;
  const { number, url } = merged.pull;
  const message = `${url} was merged, but is not published, or not completely, since that has failed for ten minutes: ${plainLine(messageOf(error), MAX_ERROR_CHARACTERS)}. Later merges do not wait for it any more; it is tried again every ten minutes. If later ones of its packages are published first, change these in another pull request`;
  record(context, 'MergeNotPublished', message, number);
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

function reportGone(context: ApplyContext, { number, url }: PullRequest): void {
  hostMerges.publish({ origin: 'user', result: 'not_published' });
  const message = `${url} was merged, and its packages are not published, since it was deleted on the host before its reviews were read; change them in another pull request to publish them`;
  record(context, 'MergeNotPublished', message, number);
}

/** Once. What a process finds at its start may have been removed from the main branch long ago. */
function reportMissing(context: ApplyContext, merged: MergedUserPull): void {
  if (merged.isMissed || merged.isReported === true) return;
  merged.isReported = true;
  const { number, url, merged: { commit = '' } = {} } = merged.pull;
  const message = `${url} was merged, but is not published: its commit ${inlineCode(commit)} does not arrive on the main branch of the repository ${context.repository.repository}; check that this is the one of the host and that its main branch was not reset. What it brought is published when it arrives`;
  record(context, 'MergeNotPublished', message, number);
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

async function report(
  context: ApplyContext,
  pulls: UserPulls,
  { pull, isMissed, attempts }: MergedUserPull,
  merge: UserMerge,
): Promise<void> {
  const text = describeUserMerge(merge);
  // That what was published or deleted long ago is not published now is no news after a start, unless no process has reported the merge.
  const isUnpublished = merge.unknown !== undefined || merge.packages.some(isMissing);
  const isOld = isMissed && isUnpublished ? await oldReports(context, pulls, pull) : () => false;
  const isNews = (one: PackageMerge) => one.result !== 'removed' && !(isMissing(one) && isOld(one));
  const news = merge.packages.filter(isNews);
  // An earlier attempt can have ended before it reported what it had published.
  const isUnreported = merge.known.length > 0 && attempts > 1;
  if (pulls.isReported(pull.number, text)) return;
  const hasUnknown = merge.unknown !== undefined && !isOld(undefined);
  if (news.length === 0 && !isUnreported && !hasUnknown) {
    // So can an earlier process. Since each merge is reported before the next one is published, only its last one can lack the comment.
    const isPublished = merge.known.length > 0 && merge.packages.every(({ result }) => result === 'removed');
    if (isMissed && isPublished) pulls.unreported = { number: pull.number, text };
    return;
  }
  for (const one of news) if (isMissing(one)) await reportPackage(context, pull, one);
  if (hasUnknown) {
    hostMerges.publish({ origin: 'user', result: 'not_published' });
    const message = `the merge of ${pull.url} ${UNKNOWN_REPORT}: ${merge.unknown}`;
    record(context, 'MergeNotPublished', message, pull.number);
  }
  await comment(context, pulls, pull.number, text);
}

const MISSING: ReadonlySet<PackageMerge['result']> = new Set(['not_published', 'left_out']);

/** Whether a merge should have brought more to its package. */
function isMissing({ result }: PackageMerge): boolean {
  return MISSING.has(result);
}

/**
 * Of a merge from before the start, whether a process has reported what is missing of a package, or without one that there may be more; so it has if the
 * package was published, and deleted since. Comments on the host do not show it, as users change them.
 */
async function oldReports(
  { client, clock, repository, signal }: ApplyContext,
  pulls: UserPulls,
  { url, closedAt, merged }: PullRequest,
): Promise<(one: PackageMerge | undefined) => boolean> {
  const isLate = closedAt === undefined || clock.now() - Date.parse(closedAt) > MAX_UNREPORTED_MS;
  if (isLate || pulls.searched >= MAX_SEARCHED) return () => true;
  pulls.searched += 1;
  const reports = await eventsOfMerge(client, { namespace: repository.namespace, url }, signal);
  return (one) => {
    if (one === undefined) return reports.some(({ message }) => message.includes(UNKNOWN_REPORT));
    const { package: name } = keyAt({ repository, workspace: '' }, one.path);
    if (reports.some(({ message }) => message.includes(`the merge of ${one.path} by ${url}`))) return true;
    return one.result === 'not_published' && wasPublished(repository, name, merged?.commit ?? '');
  };
}

async function reportPackage(context: ApplyContext, { url, number, merged }: PullRequest, one: PackageMerge) {
  const { client, events, repository, signal } = context;
  const where = `${one.path} by ${url}`;
  if (one.result === 'removed') return;
  if (one.result === 'left_out') {
    hostMerges.publish({ origin: 'user', result: 'not_published' });
    record(context, 'MergeNotPublished', `the merge of ${where} is not complete: ${one.reason}`, number);
    return;
  }
  hostMerges.publish({ origin: 'user', result: one.result });
  if (one.result === 'not_published') {
    record(context, 'MergeNotPublished', `the merge of ${where} is not published: ${one.reason}`, number);
    return;
  }
  const key = { namespace: repository.namespace, name: one.revision.name };
  const object = await client.find(packageRevisionKind, key, { signal });
  const [type, reason, message] =
    one.result === 'published'
      ? (['Normal', 'Approved', `published at ${merged?.commit}, the merge of ${where}`] as const)
      : ([
          'Warning',
          'OutOfBand',
          `the merge of ${where} is out of band and is not delivered, since it could not be published: ${one.refusal}`,
        ] as const);
  if (object !== undefined) {
    events.record(object, type, reason, message, 'ended');
    events.forget(key);
  }
  if (one.result === 'out_of_band') record(context, reason, message, number);
}

function record({ events, object }: ApplyContext, reason: string, message: string, number: number): void {
  events.record(object, 'Warning', reason, message, `merge ${number}`);
  // It is reported once; the memory of it would grow with the history.
  events.forgetTopic({ namespace: object.metadata.namespace, name: object.metadata.name }, `merge ${number}`);
}

/** The publication counts whether or not the host takes a comment about it. */
async function comment(
  { forge, repository, signal }: ApplyContext,
  pulls: UserPulls,
  number: number,
  text: string,
): Promise<void> {
  // A failure can follow the effect.
  pulls.noteReported(number, '');
  try {
    await forge.setComment(number, topicOf(repository), text, signal);
  } catch (error) {
    if (!isSluiceError(error) || !UNWRITABLE.has(error.code)) throw error;
  }
  pulls.noteReported(number, text);
}

/** Each Repository of a branch publishes its packages at its own time, and reports these. */
function topicOf({ id, layout: { directory } }: ApplyContext['repository']): string {
  return directory === '' ? 'merged' : `merged-${digest(id).replace(/^.*:/, '').slice(0, 12)}`;
}

/** A locked conversation, or one that a user has deleted. */
const UNWRITABLE: ReadonlySet<string> = new Set(['Refused', 'NotFound', 'InvalidInput']);
