import { spacedWords } from '../../src/foundation/text/spaced-words.ts';
import type { WavePlan } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { WaveTarget } from '../../src/resource/kinds/sluice/wave/wave-target.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { analysesOf, currentWave } from '../../src/rollout/wave/follow-waves.ts';
import { holdsTargets, isFinal } from '../../src/rollout/wave/plan-state.ts';
import type { ObjectExplanation } from '../package-variant/describe-variant.ts';
import { runName } from './analysis-runs.ts';
import { SPEC_CONDITIONS } from './conditions/observe-conditions.ts';
import { EVERYTHING, SELECTED_CONDITION } from './conditions/selected.ts';
import { commandsOf, deadlineText, requestText, verificationText } from './describe-waits.ts';
import { waveRecordsOf } from './plan-records.ts';
import { planSpecOf } from './plan-spec.ts';

/** Targets that are named. */
const MAX_NAMED = 10;
/** Phases of targets that a plan waits for, those that need a user first. */
const OPEN_PHASES = ['NotRolledBack', 'Failed', 'Unreachable', 'Approving', 'RollingBack', 'Approved', 'Assigned'];

/**
 * What a plan approves, what it waits for, and which of its targets are not done. `unknown`: see `unknownNames`; `isServed`: a server carries
 * out what users request.
 */
export function describePlan(
  plan: Stored<WavePlan>,
  targets: readonly WaveTarget[],
  unknown: readonly string[],
  isServed: boolean,
): ObjectExplanation {
  const { metadata, spec, status } = plan;
  const open = openTargets(targets);
  const named = open.slice(0, MAX_NAMED);
  const request = requestText(plan, isServed);
  const frozen = status?.freezes === undefined ? '' : ', frozen';
  const { total = 0, approved = 0, verified = 0, failed = 0, unreachable = 0, skipped = 0 } = status?.targets ?? {};
  const counts = `${approved} approved, ${verified} verified, ${failed} failed, ${unreachable} unreachable, ${skipped} skipped`;
  const notes = specNotes(plan);
  return {
    subject: `WavePlan ${metadata.name}`,
    state: phaseText(plan) === undefined ? 'not carried out yet' : `${phaseText(plan)}${frozen}`,
    reasons: [
      `it approves its targets in the waves ${spec.waves.map(({ name }) => name).join(', ')}`,
      ...(status?.phase === undefined
        ? ['no controller has carried it out yet: is "sluice up" running, and the controller wave-plan not disabled?']
        : [`targets: ${total}, of which ${counts}`, messageOf(plan)]),
      ...(request === undefined ? [] : [request]),
      ...notes,
      ...unknown.filter((text) => !notes.some((note) => note.includes(text))),
      ...(isInProgress(plan) ? [verificationText(plan)] : []),
      ...targetNotes(plan, targets),
    ],
    commands: commandsOf(plan),
    next: [...runsOf(plan), ...named.flatMap(({ record }) => record?.revision ?? []).slice(0, 3)],
  };
}

/** The phase as users see it: a deleted plan approves nothing any more, whatever it did before. */
export function phaseText({ metadata, status }: WavePlan): string | undefined {
  return metadata.deletionTimestamp === undefined ? status?.phase : 'Deleting';
}

/** True for a plan that verifies targets, or will. */
export function isInProgress({ metadata, status }: WavePlan): boolean {
  return metadata.deletionTimestamp === undefined && holdsTargets(status?.phase ?? 'Completed');
}

/** The targets that are not done, with what each waits for, those that need a user first. */
export function targetNotes(plan: WavePlan, targets: readonly WaveTarget[]): string[] {
  const open = openTargets(targets);
  const rest = open.length - MAX_NAMED;
  return [
    ...open.slice(0, MAX_NAMED).map((target) => targetText(target, plan)),
    ...(rest > 0
      ? [`and ${rest} more targets that are not done; "sluice wave get ${plan.metadata.name} --targets" lists all`]
      : []),
  ];
}

function openTargets(targets: readonly WaveTarget[]): WaveTarget[] {
  return targets.filter(({ record }) => OPEN_PHASES.includes(record?.phase ?? '')).sort(compareOpen);
}

/** What is noteworthy of the conditions about the spec of a plan, for users. One that is completed may still select targets by a correction. */
export function specNotes({ status }: Pick<WavePlan, 'status'>): string[] {
  const { phase = 'Pending', conditions = [] } = status ?? {};
  if (isFinal(phase)) return [];
  const types = phase === 'Completed' ? [SELECTED_CONDITION] : SPEC_CONDITIONS;
  return conditions
    .filter(({ type }) => types.includes(type))
    .filter(({ status: is, reason }) => is === 'False' || (reason === EVERYTHING && phase !== 'Completed'))
    .map(({ message }) => message);
}

function messageOf({ status }: WavePlan): string {
  const since = status?.log?.at(-1)?.time;
  return `${status?.message ?? ''}${since === undefined ? '' : ` (since ${since})`}`;
}

function targetText(target: WaveTarget, plan: WavePlan): string {
  const { spec, record } = target;
  const due = deadlineText(target, plan);
  const { wave, phase, reason, log = [] } = record ?? {};
  const since = log.at(-1)?.time;
  const where = wave === undefined ? '' : ` in wave ${wave}`;
  return `${spec.repository}/${spec.package}${where} is ${spacedWords(phase ?? 'Unknown')}${since === undefined ? '' : ` since ${since}`}${reason === undefined ? '' : `: ${reason}`}${due === undefined ? '' : `; ${due}`}`;
}

function compareOpen(one: WaveTarget, other: WaveTarget): number {
  const [a, b] = [one, other].map(({ record, metadata }) => ({
    rank: OPEN_PHASES.indexOf(record?.phase ?? ''),
    isSilent: record?.reason === undefined,
    name: metadata.name,
  }));
  if (a === undefined || b === undefined) return 0;
  return a.rank - b.rank || Number(a.isSilent) - Number(b.isSilent) || (a.name < b.name ? -1 : 1);
}

/** The analyses that the wave in progress waits for. */
function runsOf(plan: Stored<WavePlan>): string[] {
  const current = currentWave({ waves: waveRecordsOf(plan) });
  if (current?.verifiedMs === undefined || current.analysedMs !== undefined) return [];
  return analysesOf(current, planSpecOf(plan)).map((key) => `analysisrun/${runName(plan, key)}`);
}
