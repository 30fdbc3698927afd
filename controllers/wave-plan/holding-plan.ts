import { unlessMissing } from '../../src/foundation/sluice-error.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { WAVE_PLAN_FINALIZER, type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { holdsTargets } from '../../src/rollout/wave/plan-state.ts';
import { readSelection, type SelectionOptions } from './select-revisions.ts';

/** True for a plan that holds what it selects: no other controller approves that. A deleted plan does so until its finalizer is removed. */
export function isActive({ metadata, spec, status }: WavePlan): boolean {
  const isDeleted =
    metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(WAVE_PLAN_FINALIZER) !== true;
  return !isDeleted && !spec.abort && holdsTargets(status?.phase ?? 'Pending');
}

/**
 * The active plan that selects a Proposed revision, which only it approves automatically; undefined if there is none. It is read for each
 * decision, so that a plan that was created before counts.
 */
export async function holdingPlan(
  revision: PackageRevision,
  options: SelectionOptions,
): Promise<Stored<WavePlan> | undefined> {
  const found = await unlessMissing(options.client.list(wavePlanKind, { namespace: revision.namespace }));
  for (const plan of found?.items ?? []) {
    if (!isActive(plan)) continue;
    const selection = await readSelection(plan, options);
    if (selection.isSelected(revision)) return plan;
  }
  return undefined;
}
