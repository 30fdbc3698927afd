import { approvedMetadata } from '../../package/model/record/object-metadata.ts';
import {
  type SelectedRevision,
  type Selecting,
  selectsForApproval,
} from '../../package/store/policies/selected-packages.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import { WAVE_PLAN_FINALIZER, type WavePlan } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import type { DeepReadonly } from '../../resource/object/object.ts';
import { holdsTargets } from './plan-state.ts';

/** True for a plan that holds what it selects: no other controller approves that. A deleted plan does so until its finalizer is removed. */
export function isActive({ metadata, spec, status }: DeepReadonly<WavePlan>): boolean {
  const isDeleted =
    metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(WAVE_PLAN_FINALIZER) !== true;
  return !isDeleted && !spec.abort && holdsTargets(status?.phase ?? 'Pending');
}

/** What a plan selects by, apart from its blueprint, in the form of a policy. */
export function selectingOf({ spec }: Pick<DeepReadonly<WavePlan>, 'spec'>): Selecting {
  const { variantSet, blueprint: _blueprint, ...packages } = spec.selector;
  return { spec: { selector: variantSet === undefined ? packages : { ...packages, variantSets: [variantSet] } } };
}

/** What a plan selects by names and by labels of repositories, which no user who may edit a draft can change, in the form of a policy. */
export function nameSelectingOf({ spec }: Pick<DeepReadonly<WavePlan>, 'spec'>): Selecting {
  const { variantSet: _set, blueprint: _blueprint, packageSelector: _labels, ...packages } = spec.selector;
  return { spec: { selector: packages } };
}

/** Where a plan puts a revision that it selects. */
export interface PlaceInPlan {
  /** Names of the waves whose selectors match. */
  readonly waves: readonly string[];
  /** The label that sorts it; undefined if the plan names none. */
  readonly label: { readonly value: string | undefined } | undefined;
}

/**
 * The place of a revision in the order of a plan. An earlier one is approved before others are verified, so that only labels count by which a plan
 * may select: users who may edit a draft write the others.
 */
export function placeInPlan(
  { waves, order }: DeepReadonly<WavePlan>['spec'],
  revision: SelectedRevision,
  repository: DeepReadonly<Repository> | undefined,
): PlaceInPlan {
  const { labels } = approvedMetadata(revision.record);
  return {
    waves: waves
      .filter(({ selector }) => selector !== undefined && selectsForApproval(selector, revision, repository))
      .map(({ name }) => name),
    label:
      order.label === undefined
        ? undefined
        : { value: Object.hasOwn(labels, order.label) ? labels[order.label] : undefined },
  };
}
