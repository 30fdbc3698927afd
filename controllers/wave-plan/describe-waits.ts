import { shortDuration } from '../../src/foundation/time/age.ts';
import { sluiceCommand } from '../../src/package/api/explain/explainer.ts';
import { SYSTEM_NAMESPACE } from '../../src/resource/kinds/core/namespace.ts';
import type { WavePlan } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { WaveTarget } from '../../src/resource/kinds/sluice/wave/wave-target.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { parseDuration } from '../../src/resource/object/duration.ts';
import { DEFAULT_NAMESPACE } from '../../src/resource/object/object.ts';
import { currentWave, isPassed, nextWave } from '../../src/rollout/wave/follow-waves.ts';
import { isFinal, isOver } from '../../src/rollout/wave/plan-state.ts';
import { freezeOptions } from '../approval/explain-freeze.ts';
import { VERIFIABLE_CONDITION } from './conditions/verifiable.ts';
import { waveRecordsOf } from './plan-records.ts';
import { planSpecOf, wavePlanApprovals } from './plan-spec.ts';

/*
 * What a plan waits for, and what ends the wait, for users: by the fields of the plan and of its targets alone, so that it is also known where
 * no controller runs.
 */

/** What verifies the targets of a plan, and until when. */
export function verificationText({ spec }: Pick<WavePlan, 'spec'>): string {
  const { condition, http, deployed } = spec.verification;
  const engines =
    deployed?.targets === undefined
      ? 'each DeliveryTarget that selects it has delivered it, and its engine'
      : `each of the DeliveryTargets ${deployed.targets.join(', ')} has delivered it, and its engine`;
  const what =
    condition !== undefined
      ? `the condition ${condition.type} of its WaveTarget is True, which an external program sets`
      : http !== undefined
        ? `${http.url} answers a GET request with success, every ${http.interval}`
        : `${engines} reports it as synced and healthy`;
  return `a target is verified once ${what}; it has ${spec.progressDeadline} from its approval (spec.progressDeadline)`;
}

/** How much of the time of the plan an approved target has until it fails; undefined for any other one, or in a plan that is over. */
export function deadlineText({ record }: WaveTarget, { spec, status }: WavePlan): string | undefined {
  if (record?.phase !== 'Approved' || status?.phase === undefined || isOver(status.phase)) return undefined;
  const leftMs = record.sinceMs + (parseDuration(spec.progressDeadline) ?? 0) - status.elapsedMs;
  return leftMs <= 0 ? 'its deadline has passed' : `it has ${shortDuration(leftMs)} more of the time of the plan`;
}

/** What users have requested and the controller has not carried out yet; undefined if there is nothing. */
export function requestText(plan: WavePlan, isServed: boolean): string | undefined {
  const requests = pendingRequests(plan);
  if (requests.length === 0) return undefined;
  const when = isServed ? 'which takes effect in a moment' : 'which takes effect once "sluice up" runs';
  return `requested: ${requests.join(', ')}, ${when}`;
}

function pendingRequests({ spec, status }: WavePlan): string[] {
  const { phase = 'Pending', pause, pauses = 0 } = status ?? {};
  if (isFinal(phase)) return [];
  if (spec.abort) return ['abort'];
  if (phase === 'RollingBack') return [];
  if (spec.rollback) return ['rollback'];
  if (phase === 'Completed') return [];
  const waves = waveRecordsOf({ status });
  const current = currentWave({ waves })?.name;
  const isPast = current !== undefined && isPassed({ waves }, current, planSpecOf({ spec }));
  const isEnded = pause?.cause === 'Requested' ? !spec.paused : spec.resume >= pauses;
  return [
    ...(isPast ? [`promote past wave ${spec.promotePast}`] : []),
    ...(phase === 'Paused' && isEnded ? ['resume'] : []),
    ...(phase !== 'Paused' && spec.paused ? ['pause'] : []),
  ];
}

/** The commands that end what a plan waits for, where that is the decision of a user. */
export function commandsOf({ metadata, spec, status }: WavePlan): string[] {
  const { name, namespace = DEFAULT_NAMESPACE, deletionTimestamp } = metadata;
  const { phase = 'Pending' } = status ?? {};
  if (isOver(phase) || spec.abort) return [];
  if (deletionTimestamp !== undefined) return [sluiceCommand('wave', 'abort', name)];
  const ends = (status?.freezes ?? []).map((freeze) =>
    sluiceCommand(
      ...['freeze', 'end', freeze.name],
      ...freezeOptions(freeze.namespace === SYSTEM_NAMESPACE, freeze.namespace, namespace),
    ),
  );
  if (ends.length > 0 || phase === 'RollingBack') return ends;
  if (phase === 'Paused')
    return [
      sluiceCommand('wave', 'resume', name),
      sluiceCommand('wave', 'abort', name),
      sluiceCommand('wave', 'rollback', name),
    ];
  const waves = waveRecordsOf({ status });
  const next = nextWave({ waves }, planSpecOf({ spec }));
  if (next !== undefined && wavePlanApprovals({ spec }, next.name).length < next.approvals)
    return [sluiceCommand('wave', 'approve', name, '--wave', next.name)];
  const current = currentWave({ waves });
  // Nothing but a user ends the wait for health that nothing reports.
  const isUnread = findCondition(status?.conditions, VERIFIABLE_CONDITION)?.status === 'False';
  if (current !== undefined && current.verifiedMs === undefined && isUnread && spec.promotePast !== current.name)
    return [sluiceCommand('wave', 'promote', name)];
  return [];
}
