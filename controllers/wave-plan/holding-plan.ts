import { unlessMissing } from '../../src/foundation/sluice-error.ts';
import { proposalOf } from '../../src/package/kernel/revision-state.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { BlockingRule } from '../../src/package/model/revision/revision-state.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { DEFAULT_NAMESPACE, keyOf, type Stored } from '../../src/resource/object/object.ts';
import { isActive } from '../../src/rollout/wave/plan-selection.ts';
import { findTarget, isOfPlan, listTargets, targetId } from './plan-records.ts';
import { type PlanSelector, type Selection, type SelectionOptions, selections } from './select-revisions.ts';

/**
 * The active plan that holds a Proposed revision, which only it approves automatically; undefined if there is none. Of more than one it is the
 * oldest: a plan that is created later cannot pass what an earlier one waits for. It is read for each decision, so that a plan that was created
 * before counts. A plan holds what it selects, and every revision of a package that is one of its targets: these are recorded, so that a change
 * of variants, sets or labels by users who may not approve does not end the hold.
 */
export async function holdingPlan(
  revision: PackageRevision,
  options: SelectionOptions,
): Promise<Stored<WavePlan> | undefined> {
  const { client } = options;
  const found = await unlessMissing(client.list(wavePlanKind, { namespace: revision.namespace }));
  return holderAmong(found?.items ?? [], revision, selections(revision.namespace, options), client);
}

/** The one of these plans that holds a revision. */
export async function holderAmong(
  plans: readonly Stored<WavePlan>[],
  revision: PackageRevision,
  selectorOf: (plan: Stored<WavePlan>) => PlanSelector | Promise<PlanSelector>,
  client: Client,
): Promise<Stored<WavePlan> | undefined> {
  for (const plan of inOrder(plans)) {
    const selector = await selectorOf(plan);
    if (selector.isHeld(revision)) return plan;
    if (selector.isHeldAsTarget(revision) && (await findTarget(plan, revision.key, client))) return plan;
  }
  return undefined;
}

/** The hold of a plan as a rule that keeps a Proposed revision from being published by controllers. */
export function holdRule(
  { metadata: { name, creationTimestamp } }: Stored<WavePlan>,
  { record }: Pick<PackageRevision, 'record'>,
): BlockingRule {
  const proposedAt = record && proposalOf(record)?.at;
  const [since] = [creationTimestamp, ...(proposedAt === undefined ? [] : [proposedAt])].sort(
    (one, other) => Date.parse(other) - Date.parse(one),
  );
  return {
    rule: 'Wave',
    message: `WavePlan ${name} holds it, and approves what it selects in its waves`,
    ...(since === undefined ? {} : { since }),
    resolvedBy: `WavePlan ${name} in its waves, users who may change or end it, or users who may approve the revision ahead of its wave`,
  };
}

/** The revisions of these that a plan holds. */
export async function heldAmong(
  revisions: readonly PackageRevision[],
  plan: Stored<WavePlan>,
  selection: Selection,
  client: Client,
): Promise<readonly PackageRevision[]> {
  const others = revisions.filter((one) => !selection.isHeld(one) && selection.isHeldAsTarget(one));
  const targets = others.length === 0 ? [] : await listTargets(keyOf(plan), client);
  const ids = new Set(targets.filter((target) => isOfPlan(target, plan)).map(({ spec }) => targetId(spec)));
  const asTargets = new Set(others.filter(({ key }) => ids.has(targetId(key))));
  return revisions.filter((one) => selection.isHeld(one) || asTargets.has(one));
}

/** Those of the revisions that active plans hold which were created before this one, with these plans. */
export async function heldEarlier(
  revisions: readonly PackageRevision[],
  plan: Stored<WavePlan>,
  options: SelectionOptions,
): Promise<ReadonlyMap<PackageRevision, Stored<WavePlan>>> {
  const { namespace = DEFAULT_NAMESPACE } = plan.metadata;
  const { items } = await options.client.list(wavePlanKind, { namespace });
  const selectionOf = selections(namespace, options);
  const holders = new Map<PackageRevision, Stored<WavePlan>>();
  for (const earlier of inOrder(items).filter((one) => isEarlier(one, plan))) {
    const left = revisions.filter((one) => !holders.has(one));
    const held = await heldAmong(left, earlier, await selectionOf(earlier), options.client);
    for (const revision of held) holders.set(revision, earlier);
  }
  return holders;
}

function inOrder(plans: readonly Stored<WavePlan>[]): Stored<WavePlan>[] {
  return plans.filter(isActive).sort((one, other) => (isEarlier(one, other) ? -1 : 1));
}

/** Times have whole seconds; of those created in the same one, the name decides. */
function isEarlier({ metadata: one }: Stored<WavePlan>, { metadata: other }: Stored<WavePlan>): boolean {
  const [created, otherCreated] = [one.creationTimestamp, other.creationTimestamp].map(String);
  return created === otherCreated ? one.name < other.name : (created ?? '') < (otherCreated ?? '');
}
