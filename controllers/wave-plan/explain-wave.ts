import { unlessMissing } from '../../src/foundation/sluice-error.ts';
import {
  type Explainer,
  type Findings,
  type Surroundings,
  sluiceCommand,
} from '../../src/package/api/explain/explainer.ts';
import type { Reason } from '../../src/package/model/revision/explanation.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { WaveTarget } from '../../src/resource/kinds/sluice/wave/wave-target.ts';
import { isOver } from '../../src/rollout/wave/plan-state.ts';
import { reasonOf } from '../approval/explain-freeze.ts';
import { deadlineText, verificationText } from './describe-waits.ts';
import { holdingPlan, holdRule } from './holding-plan.ts';
import { findTarget } from './plan-records.ts';
import { readSelection, type SelectionOptions } from './select-revisions.ts';

/** The wave that a Proposed revision waits for: which, since when, why, and which commands end the wait. */
export function waveExplainer(options: SelectionOptions): Explainer {
  return {
    async explain({ evaluation: { revision } }, surroundings) {
      if (revision.lifecycle === 'Published') return explainPublished(revision, options.client);
      if (revision.lifecycle !== 'Proposed') return {};
      const plan = await holdingPlan(revision, options);
      if (plan === undefined) return {};
      const target = await findTarget(plan, revision.key, options.client);
      const { isSelected } = await readSelection(plan, options);
      const wait = isSelected(revision) ? waitOf(plan, revision, target) : holdOf(plan, target);
      const rule = { ...holdRule(plan, revision), message: `${wait}; ${stateOf(plan, surroundings)}` };
      return {
        reasons: [reasonOf(rule, 'WaitsForWave')],
        next: [sluiceCommand('wave', 'get', plan.metadata.name)],
      };
    },
  };
}

/** Plans in progress whose target is a published revision: in which wave, and what verifies it. */
async function explainPublished({ namespace, key, name }: PackageRevision, client: Client): Promise<Findings> {
  const plans = (await unlessMissing(client.list(wavePlanKind, { namespace })))?.items ?? [];
  const reasons: Reason[] = [];
  const next: string[] = [];
  for (const plan of plans) {
    const { phase } = plan.status ?? {};
    if (phase === undefined || isOver(phase)) continue;
    const target = await findTarget(plan, key, client);
    const { record } = target ?? {};
    if (target === undefined || record?.revision !== name) continue;
    if (record.published === undefined || record.phase === 'Skipped') continue;
    const at = record.log.at(-1)?.time;
    const where = record.wave === undefined ? 'a target' : `in wave ${record.wave}`;
    const details = [
      ...(record.reason === undefined ? [] : [record.reason]),
      ...(record.phase === 'Approved' ? [verificationText(plan), deadlineText(target, plan) ?? []].flat() : []),
    ];
    const message = `it is ${where} of WavePlan ${plan.metadata.name}, which has it as ${record.phase}${details.map((text) => `; ${text}`).join('')}`;
    reasons.push({ reason: 'WaveTarget', message, ...(at === undefined ? {} : { since: at }) });
    if (record.phase !== 'Verified' && record.phase !== 'RolledBack')
      next.push(sluiceCommand('wave', 'get', plan.metadata.name));
  }
  return { reasons, next };
}

/** Of a revision that the plan holds and does not select. */
function holdOf({ metadata: { name } }: WavePlan, target: WaveTarget | undefined): string {
  const why =
    target === undefined
      ? 'it selects it only by labels, owners, variants or a Kptfile that users without the right to approve can change'
      : 'its package is one of its targets';
  return `WavePlan ${name} holds it, since ${why}, and does not approve it; it is free when the plan has ended`;
}

function waitOf(
  { metadata: { name }, spec, status }: WavePlan,
  revision: PackageRevision,
  target: WaveTarget | undefined,
): string {
  const { record } = target ?? {};
  const since = record?.log.at(-1)?.time;
  const times = since === undefined ? '' : ` since ${since}`;
  if (record === undefined) return `WavePlan ${name} selects it and has not recorded it yet`;
  if (record.revision !== revision.name)
    return `WavePlan ${name} selects it, but has ${record.revision} as the revision of its package; it is free when the plan has ended`;
  if (record.phase === 'Skipped')
    return `WavePlan ${name} selects it and does not approve it${times}: ${record.reason}`;
  if (record.phase === 'Approving') {
    const why = record.reason === undefined ? 'about to be approved' : `and waits: ${record.reason}`;
    return `it is in wave ${record.wave} of WavePlan ${name}${times}, ${why}`;
  }
  if (record.phase === 'Assigned')
    return `it is in wave ${record.wave} of WavePlan ${name}${times}, which approves others first (maxConcurrency)`;
  const started = new Set(status?.waves.map((wave) => wave.name));
  const next = spec.waves.filter((wave) => !started.has(wave.name)).map((wave) => wave.name);
  return `it waits for its wave of WavePlan ${name}${times}; still to start: ${next.length === 0 ? 'none' : next.join(', ')}`;
}

function stateOf({ metadata: { name }, status }: WavePlan, { disabled, running }: Surroundings): string {
  if (disabled.includes('wave-plan')) return 'the wave-plan controller is disabled';
  const phase = `the plan is ${status?.phase ?? 'Pending'}${status?.message === undefined ? '' : ` (${status.message})`}`;
  return running ? phase : `${phase}, and continues as soon as "sluice up" runs; "sluice wave get ${name}" shows it`;
}
