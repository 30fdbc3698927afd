import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import type { WavePlan } from '../../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { findCondition, type NewCondition } from '../../../src/resource/object/condition.ts';
import { DEFAULT_NAMESPACE, type Stored } from '../../../src/resource/object/object.ts';
import type { Candidate } from '../../../src/rollout/wave/observation.ts';
import { isFinal, type PlanState, type TargetRecord } from '../../../src/rollout/wave/plan-state.ts';
import { readUnknownNames } from '../../unknown-names.ts';
import type { Selection } from '../select-revisions.ts';
import { COVERED_CONDITION } from './covered.ts';
import { SELECTED_CONDITION, selectedCondition } from './selected.ts';
import { VERIFIABLE_CONDITION, verifiableCondition } from './verifiable.ts';

export interface ConditionOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'find' | 'list'>;
}

/** Types of the conditions that say whether the fields of a plan can have the effect that users expect. */
export const SPEC_CONDITIONS: readonly string[] = [SELECTED_CONDITION, COVERED_CONDITION, VERIFIABLE_CONDITION];

/** Targets that are examined: they differ in what selects them, and rarely much. */
const MAX_EXAMINED = 20;

/** Those of `SPEC_CONDITIONS` that hold now, apart from `Covered`, which follows from the next state; undefined if it is not known. Of a plan that is over only `Selected` does,
 * if a change of the spec may still select targets. */
export async function observeConditions(
  plan: Stored<WavePlan>,
  { phase, targets }: Pick<PlanState, 'phase' | 'targets'>,
  candidates: ReadonlyMap<string, Candidate> | undefined,
  selection: Pick<Selection, 'hasRepository' | 'repositoryOf'>,
  { client, store }: ConditionOptions,
): Promise<readonly NewCondition[] | undefined> {
  const before = findCondition(plan.status?.conditions, SELECTED_CONDITION);
  const isEdited = plan.status?.observedGeneration !== plan.metadata.generation;
  if (candidates === undefined || isFinal(phase)) return undefined;
  if (phase === 'Completed' && !isEdited && before?.status !== 'False') return undefined;
  const { namespace = DEFAULT_NAMESPACE } = plan.metadata;
  const { selector, verification } = plan.spec;
  const present = [...targets.values()].filter((target) => target.phase !== 'Skipped');
  const revisions = new Map([...present, ...candidates.values()].map(({ id, revision }) => [id, revision]));
  const isProposed = (one: { readonly namespace: string }) => one.namespace === namespace;
  // Of one that leaves now no approval counts as begun.
  const isLost = ({ id, phase: own, revision, attempt, published }: TargetRecord) =>
    (attempt === 0 || own !== 'Skipped') &&
    published === undefined &&
    !candidates.has(id) &&
    store.find(`${namespace}/${revision}`)?.lifecycle === 'Proposed';
  const selected = selectedCondition(plan, {
    targets: revisions.size,
    selected: candidates.size,
    lost: [...targets.values()].filter(isLost).map(({ id }) => id),
    proposed: revisions.size > 0 ? 0 : store.list({ lifecycle: 'Proposed' }).filter(isProposed).length,
    unknown: await readUnknownNames(client, namespace, {
      // They are all read for what is similar to the name of one that is missing.
      repositories: selector.repositories?.every(selection.hasRepository) === true ? [] : selector.repositories,
      variantSets: candidates.size > 0 || selector.variantSet === undefined ? [] : [selector.variantSet],
    }),
  });
  if (phase === 'Completed') return [selected];
  if (verification.condition !== undefined || verification.http !== undefined) return [selected];
  // What targets lack later is in their own reasons: all of them are read only until an engine reports on the plan as it is.
  const known = findCondition(plan.status?.conditions, VERIFIABLE_CONDITION);
  if (known?.status === 'True' && known.observedGeneration === plan.metadata.generation) return [selected, known];
  const examined = [...revisions].slice(0, MAX_EXAMINED).flatMap(([id, name]) => {
    const revision = store.find(`${namespace}/${name}`);
    const repository = selection.repositoryOf(id.slice(0, id.indexOf('/')));
    return revision === undefined ? [] : [{ id, revision, repository }];
  });
  if (examined.length === 0) return [selected];
  const { items } = await client.list(deliveryTargetKind, { namespace });
  const verifiable = verifiableCondition(plan, examined, items);
  return verifiable === undefined ? [selected] : [selected, verifiable];
}
