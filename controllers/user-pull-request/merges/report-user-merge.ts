import type { PullRequest } from '../../../src/forge/forge.ts';
import { messageOf } from '../../../src/foundation/sluice-error.ts';
import { wasPublished } from '../../../src/package/plan/create/merged-package.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import type { Repository } from '../../../src/resource/kinds/porch/repository.ts';
import type { Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { hostMerges } from '../../pull-request/merged/host-merges.ts';
import { eventsOfMerge } from '../../pull-request/merged/reported-merges.ts';
import { inlineCode, plainLine } from '../../pull-request/text/quote.ts';
import { keyAt } from '../judging/read-user-pull.ts';
import type { UserPulls } from '../reading/user-pulls.ts';
import { describeUserMerge } from './describe-user-merge.ts';
import { MAX_UNREPORTED_MS, type MergedUserPull } from './merged-user-pull.ts';
import type { PackageMerge, UserMerge, UserMergeContext } from './publish-user-merge.ts';

/** Merges of which a new process reads whether they were reported: so many. */
const MAX_SEARCHED = 50;
const MAX_ERROR_CHARACTERS = 500;
const UNKNOWN_REPORT = 'may have changed more packages, which are not published';

export interface ReportContext extends Pick<UserMergeContext, 'forge' | 'repository' | 'clock' | 'signal'> {
  readonly client: Client;
  readonly events: EventDeduplicator;
  /** Where events are recorded that concern no single package. */
  readonly object: Stored<Repository>;
}

/** Records events, and adds the comment to those that are to be written. */
export async function reportUserMerge(
  context: ReportContext,
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
  if (pulls.comments.has(pull.number, text)) return;
  const hasUnknown = merge.unknown !== undefined && !isOld(undefined);
  if (news.length === 0 && !isUnreported && !hasUnknown) {
    // So can an earlier process.
    const isPublished = merge.known.length > 0 && merge.packages.every(({ result }) => result === 'removed');
    if (isMissed && isPublished) pulls.comments.addMissed(pull.number, text);
    return;
  }
  for (const one of news) if (isMissing(one)) await reportMergedPackage(context, pull, one);
  if (hasUnknown) {
    hostMerges.publish({ origin: 'user', result: 'not_published' });
    const message = `the merge of ${pull.url} ${UNKNOWN_REPORT}: ${merge.unknown}`;
    record(context, 'MergeNotPublished', message, pull.number);
  }
  pulls.comments.add(pull.number, text);
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
  { client, clock, repository, signal }: ReportContext,
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

export async function reportMergedPackage(
  context: ReportContext,
  { url, number, merged }: PullRequest,
  one: PackageMerge,
) {
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

function record({ events, object }: ReportContext, reason: string, message: string, number: number): void {
  events.record(object, 'Warning', reason, message, `merge ${number}`);
  // It is reported once; the memory of it would grow with the history.
  events.forgetTopic({ namespace: object.metadata.namespace, name: object.metadata.name }, `merge ${number}`);
}

export function reportGone(context: ReportContext, { number, url }: PullRequest): void {
  hostMerges.publish({ origin: 'user', result: 'not_published' });
  const message = `${url} was merged, and its packages are not published, since it was deleted on the host before its reviews were read; change them in another pull request to publish them`;
  record(context, 'MergeNotPublished', message, number);
}

/** Once. What a process finds at its start may have been removed from the main branch long ago. */
export function reportMissing(context: ReportContext, merged: MergedUserPull): void {
  if (merged.isMissed || merged.reported === 'missing') return;
  merged.reported = 'missing';
  const { number, url, merged: { commit = '' } = {} } = merged.pull;
  const message = `${url} was merged, but is not published: its commit ${inlineCode(commit)} does not arrive on the main branch of the repository ${context.repository.repository}; check that this is the one of the host and that its main branch was not reset. What it brought is published when it arrives`;
  record(context, 'MergeNotPublished', message, number);
}

/** Once: the host may be at fault, so that it is tried again. */
export function reportFailing(context: ReportContext, merged: MergedUserPull, error: unknown): void {
  if (merged.reported === 'failing') return;
  merged.reported = 'failing';
  const { number, url } = merged.pull;
  const message = `${url} was merged, but is not published, or not completely, since that fails: ${plainLine(messageOf(error), MAX_ERROR_CHARACTERS)}. It is tried again; later merges do not wait for it. If later ones of its packages are published first, change these in another pull request`;
  record(context, 'MergeNotPublished', message, number);
}
