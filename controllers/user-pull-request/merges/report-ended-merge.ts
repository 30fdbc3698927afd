import type { Forge, PullRequest } from '../../../src/forge/forge.ts';
import { isPermanent } from '../../../src/forge/pause-after.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import type { KubernetesObject } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { reportLostMerge } from '../../pull-request/ending/report-lost-merge.ts';
import { eventsOfMerge } from '../../pull-request/merged/reported-merges.ts';
import type { UserPulls } from '../reading/user-pulls.ts';
import { MAX_UNREPORTED_MS } from './merged-user-pull.ts';

const WHY =
  'and publishes nothing, since its proposal had ended when that was read; propose its package again and approve it to publish it, or revert the merge';

/**
 * Reports a merge of a proposal that had ended, unless the controller of proposals has done it, or a process has published it as one of a user. That
 * controller follows a proposal for a while after its end, and this one reads all merges.
 */
export async function reportEndedMerge(
  {
    client,
    events,
    forge,
    clock,
    object,
    repository,
    signal,
  }: {
    readonly client: Pick<Client, 'list'>;
    readonly events: EventDeduplicator;
    readonly forge: Forge;
    readonly clock: Pick<Clock, 'now'>;
    readonly object: KubernetesObject;
    readonly repository: Pick<PackageRepository, 'index'>;
    readonly signal: AbortSignal;
  },
  pulls: Pick<UserPulls, 'isOfUser' | 'proposals' | 'takeMerged'>,
  pull: PullRequest,
): Promise<void> {
  const { url, closedAt, merged } = pull;
  const isOfUser = await pulls.isOfUser(pull);
  const isOld = closedAt === undefined || clock.now() - Date.parse(closedAt) > MAX_UNREPORTED_MS;
  const isPublished = () =>
    [...repository.index.all()].some(({ revision, commit }) => revision > 0 && commit === merged?.commit);
  if (!isOfUser && !isOld && (await pulls.proposals.isEnded(pull)) && !isPublished()) {
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
