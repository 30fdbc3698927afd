import type { SelectionCheck } from '../../package/api/requests/refuse-selection.ts';
import { recordedOwners } from '../../package/model/record/owners.ts';
import type { PolicySubject } from '../../package/model/revision/package-revision.ts';
import { inFolderOf } from '../../package/store/policies/concerned-revisions.ts';
import type { SourcedPolicy } from '../../package/store/policies/effective-policy.ts';
import {
  isPermittedBy,
  isSelectedBy,
  letsControllersApprove,
  type SelectedRevision,
  type VariantSets,
  variantSetsOf,
} from '../../package/store/policies/selected-packages.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { PackagePolicy } from '../../resource/kinds/sluice/package-policy.ts';
import type { WavePlan } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import type { DeepReadonly, ObjectKey, Stored } from '../../resource/object/object.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { type PlaceInPlan, placeInPlan, selectingOf } from '../../rollout/wave/plan-selection.ts';
import type { ObjectReaders } from './object-readers.ts';
import { readRepositories } from './shared-repositories.ts';

/** The namespace and Repository in which rules select a revision. */
interface Place {
  readonly namespace: string;
  readonly repository: Stored<Repository>;
  readonly plans: readonly Stored<WavePlan>[];
}

/** A policy or a plan, and how it concerns approvals. */
interface Rule {
  readonly name: string;
  readonly selectors: readonly Selector[];
  /** A label that it depends on besides those of its selectors. */
  readonly label?: string | undefined;
  /** True if it lets a controller approve a revision. */
  approves(revision: SelectedRevision): boolean;
  /** True if it requires something of the approval of a revision. */
  restricts(revision: SelectedRevision): boolean;
  /** When it approves a revision, compared with others; absent if there is no order. */
  placeOf?(revision: SelectedRevision): PlaceInPlan;
}

type Selector = Pick<DeepReadonly<PackagePolicy>['spec']['selector'], 'packageSelector'>;

/** Reads the policies and active plans that can select revisions of a Repository, also those of namespaces that share its packages. */
export async function readSelectionCheck(readers: ObjectReaders, key: ObjectKey): Promise<SelectionCheck> {
  await readers.refresh(key);
  const places = await Promise.all(
    readRepositories(readers.sharing, key).map(async (repository): Promise<Place> => {
      const { namespace = '' } = repository.metadata;
      return { namespace, repository, plans: await readers.readActivePlans(namespace) };
    }),
  );
  return (before, after) => {
    for (const place of places) {
      const change = changeIn(readers, place, before, after);
      if (change !== undefined) return change;
    }
    return undefined;
  };
}

function changeIn(
  readers: ObjectReaders,
  { namespace, repository, plans }: Place,
  before: PolicySubject,
  after: PolicySubject,
): string | undefined {
  const isOwn = namespace === after.namespace;
  const [was, is] = [before, after].map((subject) => (isOwn ? subject : inFolderOf(repository, subject)));
  if (was === undefined || is === undefined) return undefined;
  const setsOf = (revision: SelectedRevision) => () => variantSetsOf(readers.variantReader, revision, namespace);
  const rules = [
    ...readers.policiesIn(namespace).map((policy) => ruleOfPolicy(policy, repository, setsOf)),
    ...plans.map((plan) => ruleOfPlan(plan, repository, setsOf)),
  ];
  const where = isOwn ? '' : ` of namespace ${namespace}`;
  for (const rule of rules) {
    const name = `${rule.name}${where}`;
    if (rule.approves(is) && !rule.approves(was)) return `${causeOf(rule, was, is)} lets ${name} approve it`;
    if (rule.restricts(was) && !rule.restricts(is))
      return `the change of ${causeOf(rule, was, is)} takes it out of ${name}, which restricts its approval`;
    if (rule.approves(is) && !sameValue(rule.placeOf?.(was), rule.placeOf?.(is)))
      return `the change of ${causeOf(rule, was, is)} moves it in the order of ${name}`;
  }
  return undefined;
}

type SetsOf = (revision: SelectedRevision) => () => VariantSets;

function ruleOfPolicy(policy: SourcedPolicy, repository: Stored<Repository>, setsOf: SetsOf): Rule {
  const { approval, requiredGates, givers, review, selector } = policy.spec;
  const { quorum, maxInFlight, soak, windows, freezes, forbidSelfApproval } = approval;
  const isRestricting =
    [quorum, maxInFlight, soak, review].some((field) => field !== undefined) ||
    [windows, freezes, requiredGates, givers].some((list) => (list ?? []).length > 0) ||
    forbidSelfApproval;
  return {
    name: `PackagePolicy ${policy.metadata.name}`,
    selectors: [selector],
    approves: (revision) =>
      letsControllersApprove(policy) && isPermittedBy(policy, revision, repository, setsOf(revision)),
    restricts: (revision) => isRestricting && isSelectedBy(policy, revision, repository, setsOf(revision)),
  };
}

/** While a plan is active, no other controller approves what it selects. What revisions were cloned from is no metadata. */
function ruleOfPlan(plan: Stored<WavePlan>, repository: Stored<Repository>, setsOf: SetsOf): Rule {
  const { metadata, spec } = plan;
  const selecting = selectingOf(plan);
  return {
    name: `WavePlan ${metadata.name}`,
    selectors: [selecting.spec.selector, ...spec.waves.flatMap((wave) => wave.selector ?? [])],
    label: spec.order.label,
    approves: (revision) => isPermittedBy(selecting, revision, repository, setsOf(revision)),
    restricts: (revision) => isSelectedBy(selecting, revision, repository, setsOf(revision)),
    placeOf: (revision) => placeInPlan(spec, revision, repository),
  };
}

/** The labels or owners that make the difference. */
function causeOf({ selectors, label }: Rule, before: SelectedRevision, after: SelectedRevision): string {
  const [was, is] = [before.record?.labels ?? {}, after.record?.labels ?? {}];
  const used = [
    ...selectors.flatMap(({ packageSelector }) => [
      ...Object.keys(packageSelector?.matchLabels ?? {}),
      ...(packageSelector?.matchExpressions ?? []).map(({ key }) => key),
    ]),
    ...(label === undefined ? [] : [label]),
  ];
  const labels = [...new Set(used)].filter((key) => was[key] !== is[key]).map((key) => JSON.stringify(key));
  if (labels.length > 0) return `the label ${labels.join(', ')}`;
  const [had, has] = [recordedOwners(before.record), recordedOwners(after.record)];
  const isOnlyIn = (one: typeof had, other: typeof had) =>
    one.filter((owner) => !other.some((same) => sameValue(same, owner)));
  const owners = [...isOnlyIn(has, had), ...isOnlyIn(had, has)].map(({ kind, name }) => `${kind} ${name}`);
  return owners.length === 0 ? 'its metadata' : `the owner ${[...new Set(owners)].join(', ')}`;
}
