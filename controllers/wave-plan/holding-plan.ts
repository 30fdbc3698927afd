import { unlessMissing } from '../../src/foundation/sluice-error.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { isActive } from '../../src/rollout/wave/plan-selection.ts';
import { readSelection, type SelectionOptions } from './select-revisions.ts';

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
