import type { PullRequest } from '../../../src/forge/forge.ts';
import { isPermanent } from '../../../src/forge/pause-after.ts';
import { reportLostMerge } from '../../pull-request/ending/report-lost-merge.ts';
import { eventsOfMerge } from '../../pull-request/merged/reported-merges.ts';
import type { UserPulls } from '../reading/user-pulls.ts';
import { MAX_UNREPORTED_MS } from './merged-user-pull.ts';
import type { ReportContext } from './report-user-merge.ts';

const WHY =
  'and publishes nothing, since its proposal had ended when that was read; propose its package again and approve it to publish it, or revert the merge';

/**
 * Reports merges of proposals that had ended, unless the controller of proposals has done it, or a process has published them as those of users. That
 * controller follows a proposal for a while after its end, and this one reads all merges.
 */
export async function reportEndedMerges(
  context: ReportContext,
  pulls: Pick<UserPulls, 'isOfUser' | 'proposals' | 'takeMerged'>,
): Promise<void> {
  const ended = pulls.proposals.unreported();
  const published = new Set<string>();
  if (ended.length > 0)
    for (const { revision, commit } of context.repository.index.all()) if (revision > 0) published.add(commit);
  for (const pull of ended) await reportEndedMerge(context, pulls, pull, published);
}

async function reportEndedMerge(
  { client, events, forge, clock, object, signal }: ReportContext,
  pulls: Pick<UserPulls, 'isOfUser' | 'proposals' | 'takeMerged'>,
  pull: PullRequest,
  published: ReadonlySet<string>,
): Promise<void> {
  const { url, closedAt, merged } = pull;
  const isOfUser = await pulls.isOfUser(pull);
  const isOld = closedAt === undefined || clock.now() - Date.parse(closedAt) > MAX_UNREPORTED_MS;
  const isPublished = published.has(merged?.commit ?? '');
  if (!isOfUser && !isOld && (await pulls.proposals.isEnded(pull)) && !isPublished) {
    try {
      const { namespace } = object.metadata;
      if ((await eventsOfMerge(client, { namespace, url }, signal)).length === 0)
        await reportLostMerge({ client, events, forge, signal }, object, pull, WHY);
    } catch (error) {
      // A user may have locked or deleted it.
      if (!isPermanent(error)) throw error;
    }
  }
  pulls.proposals.settleMerged(pull.number);
  if (isOfUser) pulls.takeMerged(pull);
}
