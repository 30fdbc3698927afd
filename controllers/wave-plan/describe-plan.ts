import type { WavePlan } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { WaveTarget } from '../../src/resource/kinds/sluice/wave/wave-target.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { analysesOf, currentWave } from '../../src/rollout/wave/follow-waves.ts';
import type { ObjectExplanation } from '../package-variant/describe-variant.ts';
import { runName } from './analysis-runs.ts';
import { waveRecordsOf } from './plan-records.ts';
import { planSpecOf } from './plan-spec.ts';

/** Targets that are named. */
const MAX_NAMED = 10;
/** Phases of targets that a plan waits for, those that need a user first. */
const OPEN_PHASES = ['NotRolledBack', 'Failed', 'Unreachable', 'Approving', 'RollingBack', 'Approved', 'Assigned'];

/** What a plan approves, what it waits for, and which of its targets are not done. */
export function describePlan(plan: Stored<WavePlan>, targets: readonly WaveTarget[]): ObjectExplanation {
  const { metadata, spec, status } = plan;
  const open = targets.filter(({ record }) => OPEN_PHASES.includes(record?.phase ?? '')).sort(compareOpen);
  const named = open.slice(0, MAX_NAMED);
  const rest = open.length - named.length;
  const frozen = status?.freezes === undefined ? '' : ', frozen';
  const { total = 0, approved = 0, verified = 0, failed = 0, unreachable = 0, skipped = 0 } = status?.targets ?? {};
  const counts = `${approved} approved, ${verified} verified, ${failed} failed, ${unreachable} unreachable, ${skipped} skipped`;
  return {
    subject: `WavePlan ${metadata.name}`,
    state: status?.phase === undefined ? 'not carried out yet' : `${status.phase}${frozen}`,
    reasons: [
      `it approves its targets in the waves ${spec.waves.map(({ name }) => name).join(', ')}`,
      ...(status?.phase === undefined
        ? ['no controller has carried it out yet: is "sluice up" running, and the controller wave-plan not disabled?']
        : [`targets: ${total}, of which ${counts}`, messageOf(plan)]),
      ...named.map(targetText),
      ...(rest > 0
        ? [`and ${rest} more targets that are not done; "sluice wave get ${metadata.name} --targets" lists all`]
        : []),
    ],
    next: [...runsOf(plan), ...named.flatMap(({ record }) => record?.revision ?? []).slice(0, 3)],
  };
}

function messageOf({ status }: WavePlan): string {
  const since = status?.log?.at(-1)?.time;
  return `${status?.message ?? ''}${since === undefined ? '' : ` (since ${since})`}`;
}

function targetText({ spec, record }: WaveTarget): string {
  const { wave, phase, reason, log = [] } = record ?? {};
  const since = log.at(-1)?.time;
  const where = wave === undefined ? '' : ` in wave ${wave}`;
  return `${spec.repository}/${spec.package}${where} is ${phase}${since === undefined ? '' : ` since ${since}`}${reason === undefined ? '' : `: ${reason}`}`;
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
