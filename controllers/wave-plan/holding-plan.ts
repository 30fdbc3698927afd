import { unlessMissing } from '../../src/foundation/sluice-error.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { DEFAULT_NAMESPACE, type Stored } from '../../src/resource/object/object.ts';
import { isActive } from '../../src/rollout/wave/plan-selection.ts';
import { readSelection, type SelectionOptions } from './select-revisions.ts';

type Holder = (revision: PackageRevision) => Stored<WavePlan> | undefined;

/**
 * The active plan that selects a Proposed revision, which only it approves automatically; undefined if there is none. Of more than one it is the
 * oldest: a plan that is created later cannot pass what an earlier one waits for. It is read for each decision, so that a plan that was created
 * before counts.
 */
export async function holdingPlan(
  revision: PackageRevision,
  options: SelectionOptions,
): Promise<Stored<WavePlan> | undefined> {
  const found = await unlessMissing(options.client.list(wavePlanKind, { namespace: revision.namespace }));
  for (const plan of inOrder(found?.items ?? [])) {
    const selection = await readSelection(plan, options);
    if (selection.isSelected(revision)) return plan;
  }
  return undefined;
}

/** Finds the active plan that holds a revision although this plan selects it too. */
export async function earlierHolder(plan: Stored<WavePlan>, options: SelectionOptions): Promise<Holder> {
  const { namespace = DEFAULT_NAMESPACE } = plan.metadata;
  const { items } = await options.client.list(wavePlanKind, { namespace });
  const earlier = inOrder(items).filter((one) => isEarlier(one, plan));
  const selections = await Promise.all(
    earlier.map(async (one) => ({ one, selection: await readSelection(one, options) })),
  );
  return (revision) => selections.find(({ selection }) => selection.isSelected(revision))?.one;
}

function inOrder(plans: readonly Stored<WavePlan>[]): Stored<WavePlan>[] {
  return plans.filter(isActive).sort((one, other) => (isEarlier(one, other) ? -1 : 1));
}

/** Times have whole seconds; of those created in the same one, the name decides. */
function isEarlier({ metadata: one }: Stored<WavePlan>, { metadata: other }: Stored<WavePlan>): boolean {
  const [created, otherCreated] = [one.creationTimestamp, other.creationTimestamp].map(String);
  return created === otherCreated ? one.name < other.name : (created ?? '') < (otherCreated ?? '');
}
