import { packageDeliveryName, targetLabelValue } from '../../src/delivery/delivered/delivered-package.ts';
import { unlessMissing } from '../../src/foundation/sluice-error.ts';
import type { RevisionKey } from '../../src/package/model/identity/identity.ts';
import type { Client } from '../../src/resource/client/client.ts';
import {
  MAX_LOG_ENTRIES,
  WAVE_PLAN_FINALIZER,
  type WavePlan,
  wavePlanKind,
} from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import {
  MAX_TARGET_LOG_ENTRIES,
  type WaveTarget,
  waveTargetKind,
} from '../../src/resource/kinds/sluice/wave/wave-target.ts';
import { DEFAULT_NAMESPACE, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { currentWave } from '../../src/rollout/wave/follow-waves.ts';
import {
  INITIAL_STATE,
  type PlanState,
  type TargetRecord,
  type WaveRecord,
} from '../../src/rollout/wave/plan-state.ts';
import { restoreState } from '../../src/rollout/wave/restore-state.ts';
import type { Transition } from '../../src/rollout/wave/transition.ts';

/** Label of the targets of a plan; see `targetLabelValue`. */
const PLAN_LABEL = 'sluice.dev/wave-plan';

/** Results of verifications may alternate for as long as the deadline permits: the record has the last one, and the log has no room for them. */
const UNLOGGED: ReadonlySet<Transition['type']> = new Set(['Elapsed', 'Ordered', 'Unverified'] as const);

type Status = NonNullable<WavePlan['status']>;
export type PlanLogEntry = NonNullable<Status['log']>[number];
type TargetLog = NonNullable<WaveTarget['record']>['log'];

/** Identifies a target in a plan: the repository and the path of its package. */
export function targetId({
  repository,
  package: path,
}: {
  readonly repository: string;
  readonly package: string;
}): string {
  return `${repository}/${path}`;
}

/** True if the object belongs to this plan, and not to an earlier one with its name. */
export function isOfPlan({ metadata }: WaveTarget, plan: WavePlan): boolean {
  return metadata.ownerReferences?.some(({ uid }) => uid === plan.metadata.uid) === true;
}

/** The target of a plan for a package. */
export async function findTarget(
  plan: Stored<WavePlan>,
  { repository, package: path }: RevisionKey,
  client: Client,
): Promise<Stored<WaveTarget> | undefined> {
  const { namespace = DEFAULT_NAMESPACE, name: target } = plan.metadata;
  const name = packageDeliveryName(target, { target, repository, package: path });
  const found = await unlessMissing(client.find(waveTargetKind, { namespace, name }));
  return found !== undefined && isOfPlan(found, plan) ? found : undefined;
}

/** The targets of a plan, and those that an earlier one with its name has left. */
export async function listTargets(
  { namespace = DEFAULT_NAMESPACE, name }: ObjectKey,
  client: Client,
): Promise<readonly Stored<WaveTarget>[]> {
  const found = await unlessMissing(client.list(waveTargetKind, { namespace, fieldSelector: `spec.plan=${name}` }));
  return found?.items ?? [];
}

/** The state that a plan and its targets record. */
export function stateOf({ status }: Pick<WavePlan, 'status'>, targets: readonly WaveTarget[]): PlanState {
  const { phase, pause, pauses = 0, joins = 0, elapsedMs = 0 } = status ?? {};
  const plan = {
    phase: phase ?? INITIAL_STATE.phase,
    ...(pause === undefined ? {} : { pause }),
    ...{ pauses, joins, elapsedMs },
    waves: waveRecordsOf({ status }),
  };
  return restoreState(
    plan,
    targets.flatMap((target) => recordOf(target) ?? []),
  );
}

/** The waves that a plan records. */
export function waveRecordsOf({ status }: Pick<WavePlan, 'status'>): WaveRecord[] {
  return (status?.waves ?? []).map(
    ({ name, startedMs, verifiedMs, analysis, analysedMs, completedMs, isPromoted, isRemoved }) => ({
      ...{ name, startedMs, analysis },
      ...(verifiedMs === undefined ? {} : { verifiedMs }),
      ...(analysedMs === undefined ? {} : { analysedMs }),
      ...(completedMs === undefined ? {} : { completedMs }),
      ...(isPromoted === undefined ? {} : { isPromoted }),
      ...(isRemoved === undefined ? {} : { isRemoved }),
    }),
  );
}

function recordOf({ spec, record }: WaveTarget): TargetRecord | undefined {
  if (record === undefined) return undefined;
  const { log: _log, ...rest } = record;
  return { id: targetId(spec), ...withoutUndefined(rest) };
}

function withoutUndefined<T extends object>(value: T) {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as {
    [Key in keyof T]: Exclude<T[Key], undefined>;
  };
}

/** The object of a target. `before` is the one that there is. */
export function targetObject(
  plan: Stored<WavePlan>,
  { id, ...record }: TargetRecord,
  log: TargetLog,
  before: Stored<WaveTarget> | undefined,
): WaveTarget {
  const content = { ...record, log: log.slice(-MAX_TARGET_LOG_ENTRIES) };
  if (before !== undefined) return { ...before, record: content };
  const slash = id.indexOf('/');
  const place = { repository: id.slice(0, slash), package: id.slice(slash + 1) };
  const { name, namespace = DEFAULT_NAMESPACE, uid } = plan.metadata;
  const owner = { apiVersion: wavePlanKind.apiVersion, kind: wavePlanKind.kind, name, uid, controller: true };
  return {
    ...{ apiVersion: waveTargetKind.apiVersion, kind: waveTargetKind.kind },
    metadata: {
      name: packageDeliveryName(name, { target: name, ...place }),
      namespace,
      labels: { [PLAN_LABEL]: targetLabelValue(name) },
      // The plan decides by its records: one that is deleted stays as long as the plan.
      finalizers: [WAVE_PLAN_FINALIZER],
      ownerReferences: [owner],
    },
    spec: { plan: name, ...place },
    record: content,
  };
}

/** The entries of the logs of the targets that transitions are about, and of the plan. */
export function logOf(
  transitions: readonly Transition[],
  elapsedMs: number,
  time: string,
): { readonly targets: ReadonlyMap<string, TargetLog>; readonly plan: readonly PlanLogEntry[] } {
  const targets = new Map<string, TargetLog[number][]>();
  const plan: PlanLogEntry[] = [];
  for (const transition of transitions) {
    if (UNLOGGED.has(transition.type)) continue;
    const message = messageOf(transition);
    const entry = { time, elapsedMs, transition: transition.type, ...(message === undefined ? {} : { message }) };
    if ('id' in transition) targets.set(transition.id, [...(targets.get(transition.id) ?? []), entry]);
    else plan.push({ ...entry, ...('wave' in transition ? { wave: transition.wave } : {}) });
  }
  return { targets, plan };
}

function messageOf(transition: Transition): string | undefined {
  if ('reason' in transition) return transition.reason;
  if ('message' in transition) return `${transition.cause}: ${transition.message}`;
  if (transition.type === 'Assigned') return `wave ${transition.wave}`;
  if ('commit' in transition) return `${transition.revision} at commit ${transition.commit}`;
  return 'published' in transition ? `v${transition.published}` : undefined;
}

/** The status that records a state, with the log continued. */
export function statusOf(
  state: PlanState,
  before: Status | undefined,
  entries: readonly PlanLogEntry[],
  messageOfWave: (wave: string) => string | undefined,
): Omit<Status, 'conditions' | 'observedGeneration' | 'message'> {
  const { targets, waves, pause, phase, pauses, joins, elapsedMs } = state;
  const all = [...targets.values()];
  const count = (isMeant: (target: TargetRecord) => boolean) => all.filter(isMeant).length;
  const inPhase = (wanted: TargetRecord['phase']) => count((target) => target.phase === wanted);
  const skipped = inPhase('Skipped');
  const current = currentWave(state);
  const counts = new Map(waves.map(({ name }) => [name, { targets: 0, verified: 0, failed: 0 }]));
  for (const { wave, phase: own } of all) {
    const of = counts.get(wave ?? '');
    if (of === undefined || own === 'Skipped') continue;
    of.targets += 1;
    if (own === 'Verified') of.verified += 1;
    if (own === 'Failed' || own === 'Unreachable') of.failed += 1;
  }
  return {
    ...{ phase, pauses, joins, elapsedMs },
    ...(pause === undefined ? {} : { pause }),
    ...(current === undefined ? {} : { wave: current.name }),
    waves: waves.map((wave) => {
      const message = messageOfWave(wave.name);
      const { targets: total = 0, verified = 0, failed = 0 } = counts.get(wave.name) ?? {};
      return { ...wave, targets: total, verified, failed, ...(message === undefined ? {} : { message }) };
    }),
    targets: {
      total: all.length - skipped,
      approved: count(({ published }) => published !== undefined),
      ...{ verified: inPhase('Verified'), failed: inPhase('Failed'), unreachable: inPhase('Unreachable'), skipped },
    },
    log: [...(before?.log ?? []), ...entries].slice(-MAX_LOG_ENTRIES),
  };
}
