import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { PullRequest } from '../../../src/forge/forge.ts';
import { isSluiceError, unlessMissing } from '../../../src/foundation/sluice-error.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import type { Repository } from '../../../src/resource/kinds/porch/repository.ts';
import type { Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { hostMerges } from '../../pull-request/ending/host-merges.ts';
import type { SyncRequests } from '../../repository/sync-requests.ts';
import type { MergedUserPull, UserPulls } from '../user-pulls.ts';
import { describeUserMerge } from './describe-user-merge.ts';
import { type PackageMerge, publishUserMerge, type UserMerge, type UserMergeContext } from './publish-user-merge.ts';

/** Until a merge is looked for again in what was fetched: at first, and later, where it takes another fetch. */
const FETCH_MS = 1000;
const RETRY_MS = 10_000;
/** After that, the commit of a merge is not on the main branch, which was rewritten or is another one. */
const MAX_WAIT_MS = 600_000;
/** Merges of which a new process reads from the host whether they were reported: so many, and none that is older. */
const MAX_SEARCHED = 50;
const MAX_UNREPORTED_MS = 7 * 86_400_000;
const COMMENT_TOPIC = 'merged';

export interface ApplyContext extends Omit<UserMergeContext, 'onPublished'> {
  readonly client: Client;
  readonly events: EventDeduplicator;
  readonly object: Stored<Repository>;
  readonly requests: Pick<SyncRequests, 'add'> | undefined;
}

/**
 * Publishes what pull requests of users brought to the main branch, one after the other in the order of their merges: a later one would otherwise get
 * the lower number. What was published is found in Git, so that a repetition publishes nothing twice.
 */
export async function applyUserMerges(context: ApplyContext, pulls: UserPulls): Promise<ReconcileResult | undefined> {
  const wait = await publishInOrder(context, pulls);
  const { unreported } = pulls;
  if (unreported !== undefined) await comment(context, pulls, unreported.number, unreported.text);
  delete pulls.unreported;
  return wait;
}

async function publishInOrder(context: ApplyContext, pulls: UserPulls): Promise<ReconcileResult | undefined> {
  for (const merged of await inMergeOrder(context, pulls.merged())) {
    const { pull } = merged;
    merged.attempts += 1;
    const onPublished = (one: PackageMerge) => reportPackage(context, pull, one);
    const merge = await publishUserMerge({ ...context, onPublished }, pull);
    if (merge !== undefined) await report(context, pulls, merged, merge);
    else {
      const wait = awaitCommit(context, merged);
      if (wait !== undefined) return wait;
      const message = `${pull.url} was merged, and its commit ${pull.merged?.commit} is not on the main branch; what it brought is not published`;
      if (!merged.isMissed) record(context, 'MergeNotPublished', message, pull.number);
    }
    pulls.settle(pull);
  }
  return undefined;
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

/** Requests a sync now and then, which wakes this controller too. Undefined after a long time. */
function awaitCommit(
  { clock, requests, repository }: ApplyContext,
  merged: MergedUserPull,
): ReconcileResult | undefined {
  const now = clock.monotonic();
  merged.missingSince ??= now;
  if (now - merged.missingSince > MAX_WAIT_MS) return undefined;
  if (now - (merged.syncedAt ?? Number.NEGATIVE_INFINITY) >= RETRY_MS) {
    merged.syncedAt = now;
    requests?.add({ namespace: repository.namespace, name: repository.repository }, 'branches');
  }
  const requeueAfter = now - merged.missingSince < RETRY_MS ? FETCH_MS : RETRY_MS;
  return { requeueAfter, reason: 'the main branch has to be read' };
}

async function report(
  context: ApplyContext,
  pulls: UserPulls,
  { pull, isMissed, attempts }: MergedUserPull,
  merge: UserMerge,
): Promise<void> {
  const text = describeUserMerge(merge);
  // That what was published or deleted long ago is not published now is no news after a start, unless no process has reported the merge.
  const mayBeOld = isMissed && merge.packages.some(({ result }) => result === 'not_published');
  const isOld = mayBeOld && !(await isUnreportedMerge(context, pulls, pull));
  const isNews = ({ result }: PackageMerge) => result !== 'removed' && !(isOld && result === 'not_published');
  const news = merge.packages.filter(isNews);
  // An earlier attempt can have ended before it reported what it had published.
  const isUnreported = merge.known.length > 0 && attempts > 1;
  if (pulls.isReported(pull.number, text)) return;
  if (news.length === 0 && !isUnreported) {
    // So can an earlier process. Since each merge is reported before the next one is published, only its last one can lack the comment.
    const isPublished = merge.known.length > 0 && merge.packages.every(({ result }) => result === 'removed');
    if (isMissed && isPublished) pulls.unreported = { number: pull.number, text };
    return;
  }
  for (const one of news) if (one.result === 'not_published') await reportPackage(context, pull, one);
  await comment(context, pulls, pull.number, text);
}

/** Whether no process has reported a merge from before the start: of the last ones, the host knows. */
async function isUnreportedMerge(
  { forge, clock, signal }: ApplyContext,
  pulls: UserPulls,
  { number, closedAt }: PullRequest,
): Promise<boolean> {
  const isLate = closedAt === undefined || clock.now() - Date.parse(closedAt) > MAX_UNREPORTED_MS;
  if (isLate || pulls.searched >= MAX_SEARCHED) return false;
  pulls.searched += 1;
  return (await unlessMissing(forge.findComment(number, COMMENT_TOPIC, signal))) === undefined;
}

async function reportPackage(context: ApplyContext, { url, number, merged }: PullRequest, one: PackageMerge) {
  const { client, events, repository, signal } = context;
  const where = `${one.path} by ${url}`;
  if (one.result === 'removed') return;
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
async function comment({ forge, signal }: ApplyContext, pulls: UserPulls, number: number, text: string): Promise<void> {
  try {
    await forge.setComment(number, COMMENT_TOPIC, text, signal);
  } catch (error) {
    if (!isSluiceError(error) || !UNWRITABLE.has(error.code)) throw error;
  }
  pulls.noteReported(number, text);
}

/** A locked conversation, or one that a user has deleted. */
const UNWRITABLE: ReadonlySet<string> = new Set(['Refused', 'NotFound', 'InvalidInput']);
