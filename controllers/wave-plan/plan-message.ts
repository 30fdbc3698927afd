import { shorten } from '../../src/foundation/text/shorten.ts';
import type { FreezeRule } from '../../src/package/model/policy/approval-rules.ts';
import type { WavePlan } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { analysesOf, currentWave, hasTargets, nextWave } from '../../src/rollout/wave/follow-waves.ts';
import type { Observations } from '../../src/rollout/wave/observation.ts';
import { isOver, type PlanState, type TargetRecord } from '../../src/rollout/wave/plan-state.ts';
import { membersOf } from '../../src/rollout/wave/wave-members.ts';
import type { PlanSpec } from '../../src/rollout/wave/wave-spec.ts';
import { frozenText } from './plan-freezes.ts';
import { planSpecOf, wavePlanApprovals } from './plan-spec.ts';

const MAX_MESSAGE_CHARACTERS = 1000;

/** What the message of a plan depends on beside its state. */
export interface MessageContext {
  readonly analysisOf: Observations['analysisOf'];
  /** A repository that cannot be read yet. */
  readonly unread: string | undefined;
  /** Those in force. */
  readonly freezes: readonly FreezeRule[];
  /** Names of the AnalysisTemplates that its waves need, and that do not exist. */
  readonly missingTemplates: readonly string[];
}

/** What a plan waits for, with who can end the wait, or why it ended. */
export function planMessage(
  plan: WavePlan,
  state: PlanState,
  { analysisOf, unread, freezes, missingTemplates }: MessageContext,
): string {
  const spec = planSpecOf(plan);
  if (state.phase === 'Pending' && unread !== undefined)
    return `it starts once repository ${unread} can be read; "sluice repo get ${unread}" shows why it cannot`;
  const text = textOf(plan, spec, state, analysisOf);
  if (isOver(state.phase)) return shorten(text, MAX_MESSAGE_CHARACTERS);
  const frozen = freezes.length === 0 ? [] : [frozenText(freezes)];
  const isGoingOn = state.phase !== 'RollingBack';
  // Without it, it is not known what joins and what leaves, so that no wave starts.
  const isBlind = isGoingOn && unread !== undefined && unread === plan.spec.selector.blueprint?.repository;
  const blind = isBlind
    ? [
        `what it selects is known once repository ${unread} can be read; "sluice repo get ${unread}" shows why it cannot`,
      ]
    : [];
  // The analysis of the wave in progress reports its own.
  const missing = (isGoingOn ? missingTemplates : [])
    .filter((name) => !text.includes(`AnalysisTemplate ${name} does not exist`))
    .map((name) => `AnalysisTemplate ${name} does not exist, which a wave needs: create it`);
  return shorten([...frozen, text, ...blind, ...missing].join('; '), MAX_MESSAGE_CHARACTERS);
}

function textOf(plan: WavePlan, spec: PlanSpec, state: PlanState, analysisOf: Observations['analysisOf']): string {
  const { name } = plan.metadata;
  switch (state.phase) {
    case 'Completed':
      return completedText(state);
    case 'Aborted':
      return 'a user aborted it; nothing more is approved';
    case 'RolledBack': {
      const count = (wanted: string) => [...state.targets.values()].filter(({ phase }) => phase === wanted).length;
      const left = [...state.targets.values()].filter(({ phase }) => phase === 'NotRolledBack');
      const [first] = left;
      return first === undefined
        ? `${count('RolledBack')} targets were rolled back`
        : `${left.length} targets were not rolled back, such as ${first.id}: ${first.reason}`;
    }
    case 'RollingBack': {
      const open = [...state.targets.values()].filter(({ phase }) => phase === 'RollingBack');
      const waits = open.find(({ reason }) => reason !== undefined);
      return `${open.length} targets are being rolled back${waits === undefined ? '' : `; ${waits.id}: ${waits.reason}`}`;
    }
    case 'Paused': {
      const { cause, message } = state.pause ?? { cause: '', message: '' };
      return `${cause}: ${message}${sinceText(plan)}; continue with "sluice wave resume ${name}", or end it with "sluice wave abort ${name}", which keeps what is approved, or "sluice wave rollback ${name}", which takes it back`;
    }
    default: {
      const current = currentWave(state);
      if (current !== undefined)
        return `wave ${current.name}: ${waveMessage(spec, state, current.name, analysisOf) ?? 'in progress'}`;
      const next = nextWave(state, spec);
      if (!hasTargets(state)) return 'no Proposed revision is selected yet';
      if (next === undefined) return 'the last approvals are in progress';
      const given = wavePlanApprovals(plan, next.name);
      if (given.length >= next.approvals) return `wave ${next.name} is about to start`;
      const { from } = plan.spec.waves.find((wave) => wave.name === next.name)?.approval ?? {};
      const by = from === undefined ? 'users who may change the plan' : from.join(', ');
      return `wave ${next.name} waits for ${next.approvals - given.length} of ${next.approvals} approvals by ${by}: "sluice wave approve ${name} --wave ${next.name}"`;
    }
  }
}

/** Since when a plan is paused, by its log. */
function sinceText({ status }: WavePlan): string {
  const time = status?.log?.findLast(({ transition }) => transition === 'Paused')?.time;
  return time === undefined ? '' : ` (since ${time})`;
}

/** That every wave is completed, with how many targets were not verified, as those of a wave that a user has passed, or skipped, and why. */
export function completedText({ targets }: PlanState): string {
  const inPhase = (wanted: string) => [...targets.values()].filter(({ phase }) => phase === wanted).length;
  const verified = inPhase('Verified');
  const skipped = [...targets.values()].filter(({ phase }) => phase === 'Skipped');
  const total = targets.size - skipped.length;
  const left = [
    ...(verified < total ? [`${verified} of ${total} targets verified`] : []),
    ...(skipped.length > 0 ? [`${skipped.length} skipped (${reasonsOf(skipped)})`] : []),
  ];
  return `every wave is completed${left.length === 0 ? '' : `; ${left.join(', ')}`}`;
}

/** The different reasons of targets, with their numbers if there are several. */
function reasonsOf(targets: readonly TargetRecord[]): string {
  const groups = [...Map.groupBy(targets, ({ reason = 'no reason is recorded' }) => reason)];
  const [only] = groups;
  if (only !== undefined && groups.length === 1) return only[0];
  return groups.map(([reason, those]) => `${those.length}: ${reason}`).join('; ');
}

/** What a wave in progress waits for; of one that is over, what failed, and undefined if nothing did. */
export function waveMessage(
  spec: PlanSpec,
  state: PlanState,
  name: string,
  analysisOf: Observations['analysisOf'],
): string | undefined {
  const wave = state.waves.find((one) => one.name === name);
  if (wave === undefined) return undefined;
  const members = membersOf(state, name);
  if (wave.completedMs !== undefined && wave.verifiedMs === undefined && members.length === 0)
    return 'no target was left for it, or its selector matched none';
  const failures = failuresText(members);
  if (wave.completedMs !== undefined) return failures;
  if (members.length === 0)
    return 'its targets were removed before their approval; it waits for others, or until "sluice wave promote" passes it';
  const count = (...phases: readonly string[]) => members.filter(({ phase }) => phases.includes(phase)).length;
  const parts = [`${count('Verified')} of ${members.length} targets verified`];
  const blocked = members.filter(({ phase, reason }) => phase === 'Approving' && reason !== undefined);
  const [first] = blocked;
  if (first !== undefined) parts.push(`${blocked.length} wait for approval, such as ${first.id}: ${first.reason}`);
  const unverified = members.filter(({ phase, reason }) => phase === 'Approved' && reason !== undefined);
  const [open] = unverified;
  if (open !== undefined) parts.push(`${unverified.length} not verified, such as ${open.id}: ${open.reason}`);
  if (failures !== undefined) parts.push(failures);
  if (wave.verifiedMs === undefined) return parts.join('; ');
  const { soakMs = 0 } = spec.waves.find((one) => one.name === name) ?? {};
  const restMs = wave.verifiedMs + soakMs - state.elapsedMs;
  if (restMs > 0) parts.push(`it soaks for ${Math.ceil(restMs / 60_000)} more minutes`);
  for (const key of analysesOf(wave, spec)) {
    const run = analysisOf(key);
    const why = run?.message ? `: ${run.message}` : '';
    if (run?.phase !== 'Successful') parts.push(`analysis ${key.index + 1} is ${run?.phase ?? 'about to start'}${why}`);
  }
  return parts.join('; ');
}

function failuresText(members: readonly TargetRecord[]): string | undefined {
  const failed = members.filter(({ phase }) => phase === 'Failed' || phase === 'Unreachable');
  const [bad] = failed;
  return bad && `${failed.length} failed, such as ${bad.id}: ${bad.reason}`;
}
