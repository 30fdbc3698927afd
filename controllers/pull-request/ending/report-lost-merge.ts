import { postComment } from '../../../src/forge/comments/post-comment.ts';
import type { Forge, PullRequest } from '../../../src/forge/forge.ts';
import type { RevisionRecord } from '../../../src/package/model/record/record.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import { wasPublished } from '../../../src/package/plan/create/merged-package.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { type KubernetesObject, keyOf } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { hostMerges } from '../merged/host-merges.ts';
import { eventsOfMerge } from '../merged/reported-merges.ts';
import { isEnd } from '../text/describe-proposal.ts';
import { plainLine } from '../text/quote.ts';
import { proposalsIn, sectionOf } from '../text/section.ts';
import { NOT_PUBLISHED_TOPIC } from './describe-bypass.ts';
import { isMergedAfter } from './end-step.ts';

/** Of the comment about it. */
const LOST_TOPIC = 'lost-merge';
/** Each of these says it. */
const COMMENTED = [LOST_TOPIC, NOT_PUBLISHED_TOPIC];
const TITLE = '### Not published: this merge came after the end of the proposal';

/**
 * Reports a merge that publishes nothing, since its proposal had ended before the merge was read: by an event of `object`, the metric, and a comment. Nothing on
 * the host keeps it from being reported, as users can change that. `why` has the reason and the next step.
 */
export async function reportLostMerge(
  {
    client,
    events,
    forge,
    signal,
  }: {
    readonly client: Pick<Client, 'list'>;
    readonly events: EventDeduplicator;
    readonly forge: Forge;
    readonly signal: AbortSignal;
  },
  object: KubernetesObject,
  { number, url, merged }: PullRequest,
  why: string,
): Promise<void> {
  const text = `${url} was merged${merged?.by === undefined ? '' : ` by ${plainLine(merged.by)}`}, ${why}`;
  const { namespace, name } = keyOf(object);
  const reports = await eventsOfMerge(client, { namespace, url }, signal);
  // One of another object can say that the merge waits.
  const isKnown = reports.some(
    ({ involvedObject, message }) =>
      (involvedObject.kind === object.kind && involvedObject.name === name) || message.includes('publishes nothing'),
  );
  const isNew = !isKnown && events.recordFinal(object, 'Warning', 'MergeNotPublished', text, `merge ${url}`);
  if (isNew) hostMerges.publish({ origin: 'proposal', result: 'not_published' });
  // A process may have ended after the event.
  else for (const topic of COMMENTED) if ((await forge.findComment(number, topic, signal)) !== undefined) return;
  await postComment(forge, number, LOST_TOPIC, `${TITLE}\n\n${text}`, signal);
}

/**
 * Reports the merge of an earlier proposal of a revision that is proposed again, where that had ended before the merge was read. `mayPublish` returns
 * whether merges published then. Where they did not, no process has looked at it as long as the pull request does not say how it ended, or if it was
 * merged after that.
 */
export async function reportEarlierMerge(
  context: Parameters<typeof reportLostMerge>[0],
  repository: Parameters<typeof wasPublished>[0],
  {
    object,
    revision,
    record: { steps },
  }: {
    readonly object: KubernetesObject;
    readonly revision: Pick<Revision, 'key' | 'name'>;
    readonly record: Pick<RevisionRecord, 'steps'>;
  },
  pull: PullRequest,
  mayPublish: () => Promise<boolean>,
): Promise<void> {
  const { state, body, head, merged } = pull;
  if (state !== 'merged') return;
  // Users can remove the marker.
  if (proposalsIn(body).length === 0 && !steps.some(({ commit }) => commit === head.commit)) return;
  const before = steps.slice(
    0,
    Math.max(
      0,
      steps.findLastIndex(({ action }) => action === 'propose'),
    ),
  );
  // No rejection where something else has ended the last one: merges during that were reported then.
  const end = before.findLast(({ action }) => action === 'propose' || action === 'reject');
  if (isEnd(sectionOf(body) ?? '') && !isMergedAfter(pull, end) && !(await mayPublish())) return;
  if (merged !== undefined && wasPublished(repository, revision.key.package, merged.commit)) return;
  const why = `and publishes nothing: its proposal had ended when that was read, and ${revision.name} was proposed again since; approve that to publish it, or revert the merge`;
  await reportLostMerge(context, object, pull, why);
}
