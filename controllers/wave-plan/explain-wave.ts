import { packageDeliveryName } from '../../src/delivery/delivered/delivered-package.ts';
import { unlessMissing } from '../../src/foundation/sluice-error.ts';
import { type Explainer, type Surroundings, sluiceCommand } from '../../src/package/api/explain/explainer.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { WavePlan } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { type WaveTarget, waveTargetKind } from '../../src/resource/kinds/sluice/wave/wave-target.ts';
import { holdingPlan } from './holding-plan.ts';
import type { SelectionOptions } from './select-revisions.ts';

/** The wave that a Proposed revision waits for: which, since when, why, and which commands end the wait. */
export function waveExplainer(options: SelectionOptions): Explainer {
  return {
    async explain({ evaluation: { revision } }, surroundings) {
      if (revision.lifecycle !== 'Proposed') return {};
      const plan = await holdingPlan(revision, options);
      if (plan === undefined) return {};
      const target = await findTarget(plan, revision, options);
      const message = `${waitOf(plan, revision, target)}; ${stateOf(plan, surroundings)}; users who may approve it can do so ahead of its wave`;
      const { name } = plan.metadata;
      return { reasons: [{ reason: 'WaitsForWave', message }], next: [sluiceCommand('wave', 'get', name)] };
    },
  };
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

async function findTarget(
  { metadata: { name } }: WavePlan,
  { namespace, key }: PackageRevision,
  { client }: SelectionOptions,
): Promise<WaveTarget | undefined> {
  const object = packageDeliveryName(name, { target: name, repository: key.repository, package: key.package });
  return unlessMissing(client.get(waveTargetKind, { namespace, name: object }));
}
