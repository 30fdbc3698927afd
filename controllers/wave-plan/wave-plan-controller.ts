import { randomBytes } from 'node:crypto';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { unlessMissing } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { SteadyClock } from '../../src/foundation/time/steady-clock.ts';
import { freezesInForce } from '../../src/package/store/policies/freeze-objects.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { analysisTemplateKind } from '../../src/resource/kinds/sluice/wave/analysis-template.ts';
import { type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { WaveTarget } from '../../src/resource/kinds/sluice/wave/wave-target.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type Stored } from '../../src/resource/object/object.ts';
import { analysesOf, currentWave } from '../../src/rollout/wave/follow-waves.ts';
import { knownCandidates } from '../../src/rollout/wave/known-candidates.ts';
import { leftOver } from '../../src/rollout/wave/left-over.ts';
import type { Action, AnalysisKey, AnalysisObservation, Observations } from '../../src/rollout/wave/observation.ts';
import { isActive } from '../../src/rollout/wave/plan-selection.ts';
import { isOver, type PlanState, type TargetRecord } from '../../src/rollout/wave/plan-state.ts';
import { step } from '../../src/rollout/wave/step.ts';
import type { PolicyScope } from '../proposal/pending-revisions.ts';
import { type AnalysisRuns, runName } from './analysis-runs.ts';
import { coveredCondition } from './conditions/covered.ts';
import { observeConditions } from './conditions/observe-conditions.ts';
import { deleteTargets, endPlan, holdPlan, releaseTargets } from './end-plan.ts';
import { heldEarlier } from './holding-plan.ts';
import { observeCandidates } from './observe-candidates.ts';
import { untilFirstEndMs } from './plan-freezes.ts';
import { PlanMemories } from './plan-memories.ts';
import type { MessageContext } from './plan-message.ts';
import { isOfPlan, listTargets, stateOf, targetId } from './plan-records.ts';
import { planSpecOf, wavePlanApprovals } from './plan-spec.ts';
import { PlanWriter, type WriteContext } from './plan-writer.ts';
import { readSelection, unreadRepositories } from './select-revisions.ts';
import { type ApproveOptions, approveTargets, type Intent, type Outcome } from './targets/approve-targets.ts';
import {
  isUnknown,
  type ObserveOptions,
  observeRevision,
  readDelivered,
  repositoryOfId,
  verifyTargets,
} from './targets/observe-targets.ts';
import { PlanProbes } from './targets/plan-probes.ts';
import type { Probe } from './targets/probe-target.ts';
import { rollBackTargets, undeliveredText } from './targets/roll-back-target.ts';
import { waveSources } from './wave-sources.ts';

export const WAVE_PLAN_ACTOR = 'controller:wave-plan';

export interface WavePlanOptions extends ApproveOptions, ObserveOptions {
  readonly probe: Probe;
  readonly store: Pick<
    RevisionStore,
    'evaluate' | 'find' | 'findRepository' | 'list' | 'dependentsOf' | 'repositoryOf'
  >;
  readonly clock: Clock;
  /** Policies of repositories, whose changes wake plans. */
  readonly scope?: Pick<PolicyScope, 'onPolicyChange'>;
  readonly analyses: AnalysisRuns;
  /** A salt that cannot be guessed, for the order of a plan that has none. Default: 128 random bits. */
  readonly randomSalt?: () => string;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
  /** Milliseconds of a clock that never jumps. Default: that of the process. */
  readonly monotonic?: () => number;
  /** See `waveSources`. */
  readonly quietMs?: number;
  /** The namespace whose freezes are in force in all. */
  readonly systemNamespace?: string;
}

/** After so many milliseconds a plan is observed again without an event, and its time is recorded. */
const OBSERVE_MS = 30_000;
/** Rounds in one reconciliation: intend, approve, record. What is left waits for the next one. */
const MAX_ROUNDS = 4;

/** Approves revisions in waves. All decisions are in src/rollout/wave; this reads what they depend on, and carries them out. */
export function wavePlanController(options: WavePlanOptions): ControllerOptions {
  const { store, clock, analyses, monotonic = () => performance.now() } = options;
  // What is published after the end of a freeze cannot be taken back.
  const steady = new SteadyClock(clock);
  const { randomSalt = () => randomBytes(16).toString('hex') } = options;
  const client = options.client.as({ name: WAVE_PLAN_ACTOR }, 'controller');
  const recorder = options.recorder ?? new EventRecorder({ client, clock, component: WAVE_PLAN_ACTOR });
  const memories = new PlanMemories(monotonic);
  const writer = new PlanWriter({ client, clock, recorder });
  const probes = new PlanProbes({ ...options, monotonic });
  const acting = { ...options, client };

  return {
    name: 'wave-plan',
    sources: [...waveSources(clock, { ...options, ...options.scope }), probes.source],
    maxConcurrentReconciles: 4,
    namespaceShare: { most: 2, mostFailing: 1 },
    reconcileTimeoutMs: 300_000,
    baseDelayMs: 500,
    maxDelayMs: 60_000,
    async reconcile(key, { signal }): Promise<ReconcileResult | undefined> {
      for (let round = 1; ; round += 1) {
        const plan = await client.find(wavePlanKind, key);
        // Its targets have it as their owner: the garbage collection deletes them.
        if (plan === undefined || plan.metadata.deletionTimestamp !== undefined) {
          memories.forget(key);
          probes.forget(key);
          if (plan !== undefined) return endPlan(plan, { client, store, clock, recorder });
          await releaseTargets(key, client);
          return undefined;
        }
        const isClosed =
          isOver(plan.status?.phase ?? 'Pending') && memories.of(plan).isClosed(plan.metadata.generation);
        const due = isClosed
          ? undefined
          : await observeAndAct(isActive(plan) ? await holdPlan(plan, client) : plan, signal);
        if (due === undefined) return undefined;
        if (due > 0 || round === MAX_ROUNDS)
          return { requeueAfter: Math.max(due, 50), reason: 'the plan is in progress' };
      }
    },
  };

  /** Returns the milliseconds until the next observation, 0 for at once; undefined if there is none until the plan is changed. */
  async function observeAndAct(plan: Stored<WavePlan>, signal: AbortSignal): Promise<number | undefined> {
    const items = await listTargets(keyOf(plan), client);
    const { creationTimestamp } = plan.metadata;
    const isLeft = (one: Stored<WaveTarget>) =>
      !isOfPlan(one, plan) && one.metadata.creationTimestamp < creationTimestamp;
    await deleteTargets(items.filter(isLeft), client);
    const objects = new Map(items.filter((one) => isOfPlan(one, plan)).map((one) => [targetId(one.spec), one]));
    const state = stateOf(plan, [...objects.values()]);
    const memory = memories.of(plan);
    const spec = planSpecOf(plan);
    // Before the plan starts, each observation has another one. That of the start is recorded with it.
    const salt = plan.spec.order.salt ?? plan.status?.salt ?? randomSalt();
    const observations = await observe(plan, state, objects, salt);
    // Whether a changed spec selects targets again is known once all repositories can be read: it is decided once.
    const isEnding = plan.spec.abort || plan.spec.rollback;
    if (state.phase === 'Completed' && observations.isEdited && observations.unread !== undefined && !isEnding)
      return OBSERVE_MS;
    memory.observed(observations.isFrozen);
    const next = step(spec, state, observations, memory.elapsedMs());
    signal.throwIfAborted();
    const isEnded = isOver(next.state.phase);
    // Nothing of a plan that is over is observed later: not that a freeze has ended either.
    const freezes = isEnded ? [] : observations.freezes;
    const isRecorded = await writer.write(plan, objects, state, next, {
      ...{ spec, salt },
      isDue: memory.isDue(OBSERVE_MS),
      ...observations,
      freezes,
      conditions: withCovered(observations.conditions, leftOver(spec, next.state, observations), next.state),
    });
    if (isRecorded) memory.recorded();
    const acted = await carryOut(plan, next.state, next.actions, signal);
    if (isEnded) {
      const isApproving = ({ phase, published }: TargetRecord) => phase === 'Approving' && published === undefined;
      memory.noteOver(plan.metadata.generation, [...next.state.targets.values()].some(isApproving));
      if (!memory.isClosed(plan.metadata.generation)) return OBSERVE_MS;
      probes.forget(keyOf(plan));
      return undefined;
    }
    if (acted || next.nextMs === 0) return 0;
    return Math.min(next.nextMs ?? OBSERVE_MS, OBSERVE_MS, untilFirstEndMs(freezes, steady.now()) ?? OBSERVE_MS);
  }

  async function observe(
    plan: Stored<WavePlan>,
    state: PlanState,
    objects: ReadonlyMap<string, Stored<WaveTarget>>,
    salt: string,
  ): Promise<Observations & MessageContext & Pick<WriteContext, 'conditions'>> {
    const { namespace = DEFAULT_NAMESPACE } = plan.metadata;
    const selection = await readSelection(plan, { client, store });
    const closed = unreadRepositories(plan, selection, store);
    const unread = closed.blueprint ?? closed.selected;
    const { repositoryOf } = selection;
    const verifications = await verifyTargets(plan, state, objects, { ...acting, repositoryOf, probes });
    const runs = await readRuns(plan, state);
    const missingTemplates = await missingTemplatesOf(plan, state);
    const memory = memories.of(plan);
    const list = () => observeCandidates(plan, selection, store, salt);
    // A start must not miss the targets of a repository that is still being opened.
    const candidates = knownCandidates(list, closed, state.waves.length > 0);
    // Revisions of a repository that is still to be read may be selected. Without any, the one that is meant may be about to be registered.
    const isEarly = unread !== undefined || (selection.repositories.length === 0 && !plan.spec.selector.repositories);
    const known = isEarly ? undefined : candidates;
    const conditions = await observeConditions(plan, state, known, selection, { client, store });
    const deliveredOf = await readDelivered(namespace, acting);
    // Last: the less may begin after one has.
    const { systemNamespace } = options;
    const where = { namespace, ...(systemNamespace === undefined ? {} : { systemNamespace }) };
    const freezes = await freezesInForce(client, where, steady.now());
    return {
      ...{ candidates, conditions, unread, deliveredOf },
      // The store may still have a repository that was unregistered a moment ago, whose labels are not known any more.
      isUnknown: (id) => isUnknown(namespace, id, store) || !selection.hasRepository(repositoryOfId(id)),
      of: (target) => {
        const verification = verifications.get(target.id);
        return {
          ...observeRevision(plan, target, selection, store),
          ...(verification === undefined ? {} : { verification }),
          ...memory.outcomes.get(target.id),
        };
      },
      approvalsOf: (wave) => wavePlanApprovals(plan, wave).length,
      analysisOf: (run) => runs.get(runName(plan, run)),
      isFrozen: freezes.length > 0,
      isEdited: plan.status?.observedGeneration !== plan.metadata.generation,
      freezes,
      missingTemplates,
    };
  }

  /** Returns true if something may have changed, so that it is observed again at once. */
  async function carryOut(
    plan: Stored<WavePlan>,
    state: PlanState,
    actions: readonly Action[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { namespace = DEFAULT_NAMESPACE, name } = plan.metadata;
    const memory = memories.of(plan);
    // It is not known what there is in a repository that is not open.
    const isOpen = ({ id }: TargetRecord) => store.findRepository(`${namespace}/${repositoryOfId(id)}`) !== undefined;
    const intents = actions.flatMap((action) => {
      const target = action.type === 'Approve' ? state.targets.get(action.id) : undefined;
      if (target === undefined || !isOpen(target) || !memory.mayAttempt(target)) return [];
      return [{ id: target.id, key: { namespace, name: target.revision }, commit: target.commit }];
    });
    const waveOf = (id: string) => `wave ${state.targets.get(id)?.wave ?? ''} of WavePlan ${name}`;
    const { free, held } = await withoutHeld(plan, intents);
    for (const outcome of [...held, ...(await approveTargets(free, waveOf, acting, signal))])
      memory.note(outcome, state);
    const back = actions
      .flatMap((action) => (action.type === 'RollBack' ? (state.targets.get(action.id) ?? []) : []))
      .filter(isOpen);
    const rollbacks = await rollBackTargets(back, namespace, name, acting, signal);
    const undelivered = undeliveredText(rollbacks);
    if (undelivered !== undefined) recorder.record(plan, 'Warning', 'DeliveryUnknown', undelivered);
    const isRollbackMoving = rollbacks.map(([id, rollback]) => memory.noteRollback(id, rollback)).includes(true);
    const all = [...state.targets.values()].filter(({ phase }) => phase !== 'Skipped');
    const isReached = ({ wave, published }: TargetRecord) => wave !== undefined && published !== undefined;
    for (const action of actions) {
      const request = action.type === 'Analyse' ? requestOf(plan, action.run) : undefined;
      if (request === undefined) continue;
      const canary = all.filter(isReached).map(({ id }) => id);
      const untouched = all.filter((target) => !isReached(target)).map(({ id }) => id);
      await analyses.start({ ...request, canary, untouched });
    }
    return intents.length > 0 || isRollbackMoving || actions.some(({ type }) => type === 'Analyse');
  }

  /** The templates that waves need and that do not exist, before the first one of them is needed. */
  async function missingTemplatesOf(plan: Stored<WavePlan>, state: PlanState): Promise<string[]> {
    const { namespace = DEFAULT_NAMESPACE } = plan.metadata;
    const done = new Set(state.waves.flatMap(({ name, analysedMs }) => (analysedMs === undefined ? [] : [name])));
    const left = plan.spec.waves.filter(({ name }) => !done.has(name));
    const names = new Set(left.flatMap(({ analysis }) => analysis.map(({ template }) => template)));
    const found = await Promise.all(
      [...names].map((name) => unlessMissing(client.find(analysisTemplateKind, { namespace, name }))),
    );
    return [...names].filter((_, index) => found[index] === undefined);
  }

  /** The intended approvals without those of revisions that an earlier plan holds. */
  async function withoutHeld(plan: Stored<WavePlan>, intents: readonly Intent[]) {
    if (intents.length === 0) return { free: intents, held: [] };
    const revisions = new Map(intents.map(({ id, key }) => [id, store.find(keyText(key))]));
    const holders = await heldEarlier(
      [...revisions.values()].filter((one) => one !== undefined),
      plan,
      { client, store },
    );
    const held = intents.flatMap(({ id }): Outcome[] => {
      const revision = revisions.get(id);
      const holder = revision && holders.get(revision)?.metadata.name;
      if (holder === undefined) return [];
      const refusal = `WavePlan ${holder} selects it too and was created before: it decides, until it ends or is aborted with "sluice wave abort ${holder}"`;
      return [{ id, refusal }];
    });
    const ids = new Set(held.map(({ id }) => id));
    return { free: intents.filter(({ id }) => !ids.has(id)), held };
  }

  async function readRuns(plan: Stored<WavePlan>, state: PlanState): Promise<ReadonlyMap<string, AnalysisObservation>> {
    const current = currentWave(state);
    const runs = new Map<string, AnalysisObservation>();
    for (const key of current === undefined ? [] : analysesOf(current, planSpecOf(plan))) {
      const request = requestOf(plan, key);
      const found = request === undefined ? undefined : await analyses.read(request);
      if (found !== undefined) runs.set(runName(plan, key), found);
    }
    return runs;
  }
}

/** The conditions about the spec, with the targets that its waves leave over. */
function withCovered(
  conditions: WriteContext['conditions'],
  left: readonly TargetRecord[],
  { targets }: PlanState,
): WriteContext['conditions'] {
  if (conditions === undefined) return undefined;
  const total = [...targets.values()].filter(({ phase }) => phase !== 'Skipped').length;
  const covered = coveredCondition(
    left.map(({ id }) => id),
    total,
  );
  return covered === undefined ? conditions : [...conditions, covered];
}

function requestOf(plan: Stored<WavePlan>, run: AnalysisKey) {
  const analysis = plan.spec.waves.find(({ name }) => name === run.wave)?.analysis[run.index];
  if (analysis === undefined) return undefined;
  const { template, args = [] } = analysis;
  return { name: runName(plan, run), plan, wave: run.wave, template, args };
}
