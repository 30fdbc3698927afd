import type { EventRecorder, EventType } from '../../src/controller/event-recorder.ts';
import type { DeliveredPackage } from '../../src/delivery/delivered/delivered-package.ts';
import { deploymentOf, type TargetDeployment, type TimedState } from '../../src/delivery/status/target-deployment.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { recordOnRevisions } from '../revision-events.ts';

/** Records the transitions of a target as a whole; the status before it is the one that was written, so none is repeated. */
export function recordTransitions(
  recorder: Pick<EventRecorder, 'record'>,
  target: Stored<DeliveryTarget>,
  before: TargetDeployment | undefined,
  { synced, healthy }: TargetDeployment,
  isSameDelivery: boolean,
): void {
  const record = (now: TimedState, last: TimedState | undefined) => {
    if (now.status === last?.status && now.reason === last.reason) return;
    const event = eventOf(now, isSameDelivery && last?.status === 'True');
    if (event !== undefined) recorder.record(target, event.type, event.reason, now.message);
  };
  record(synced, before?.synced);
  // One message is enough for a state that both have for one reason.
  if (healthy.reason !== synced.reason) record(healthy, before?.healthy);
}

/** Package revisions that get an event of one change of a target; its own event covers all. */
const MAX_REVISIONS = 50;

/** Records on package revisions that they became healthy or unhealthy on a target; unhealthy ones first, where there are too many. */
export function recordHealthChanges(
  recorder: Pick<EventRecorder, 'record'>,
  repositories: Parameters<typeof recordOnRevisions>[1],
  { metadata }: Stored<DeliveryTarget>,
  packages: readonly DeliveredPackage[],
  before: TargetDeployment | undefined,
  now: TargetDeployment,
): void {
  if (before === undefined) return;
  const changed = packages.flatMap((name) => {
    const { healthy } = deploymentOf(now, name);
    if (healthy.status === 'Unknown' || healthy.status === deploymentOf(before, name).healthy.status) return [];
    return [{ name, healthy, isWarning: healthy.status === 'False' }];
  });
  changed.sort((a, b) => Number(b.isWarning) - Number(a.isWarning));
  for (const { name, healthy, isWarning } of changed.slice(0, MAX_REVISIONS)) {
    const message = `DeliveryTarget ${metadata.name}${healthy.message === '' ? '' : `: ${healthy.message}`}`;
    const type = isWarning ? 'Warning' : 'Normal';
    recordOnRevisions(recorder, repositories, [name], { type, reason: healthy.reason, message });
  }
}

const WARNINGS = new Set(['Failed', 'Degraded', 'Missing', 'Unreachable', 'UnknownCommit', 'Blocked']);

/** Waiting states, such as Syncing, need no event. `wasTrue` for the same delivery: the cluster no longer has what it had. */
function eventOf(
  { status, reason }: TimedState,
  wasTrue: boolean,
): { readonly type: EventType; readonly reason: string } | undefined {
  if (status === 'True') return { type: 'Normal', reason };
  return WARNINGS.has(reason) || (reason === 'OutOfSync' && wasTrue) ? { type: 'Warning', reason } : undefined;
}
