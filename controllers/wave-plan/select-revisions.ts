import { unlessMissing } from '../../src/foundation/sluice-error.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import {
  isPermittedBy,
  isSelectedBy,
  selectsByName,
  type VariantReader,
  variantSetsOf,
} from '../../src/package/store/policies/selected-packages.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { type Repository, repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import type { WavePlan } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type Stored } from '../../src/resource/object/object.ts';
import type { UnreadRepositories } from '../../src/rollout/wave/known-candidates.ts';
import { nameSelectingOf, type PlaceInPlan, placeInPlan, selectingOf } from '../../src/rollout/wave/plan-selection.ts';
import { type BlueprintStore, madeFrom } from './blueprint-versions.ts';

export interface SelectionOptions {
  readonly client: Client;
  readonly store: BlueprintStore;
}

/** Whether the selectors of a plan match a revision. */
export interface PlanSelector {
  /** True if the plan may approve it in a wave. */
  isSelected(revision: PackageRevision): boolean;
  /** True if no other controller may approve it, also because of what users without the right to approve can change. */
  isHeld(revision: PackageRevision): boolean;
  /** True if the plan holds it once its package is a target, whatever such users have changed since. */
  isHeldAsTarget(revision: PackageRevision): boolean;
}

/** Which revisions of the namespace of a plan its selectors match. */
export interface Selection extends PlanSelector {
  /** Where the plan puts a revision that it selects. */
  placeOf(revision: PackageRevision): PlaceInPlan;
  /** True for a repository that is registered. */
  hasRepository(name: string): boolean;
  repositoryOf(name: string): Stored<Repository> | undefined;
  /** Names of the registered repositories that the plan may select revisions of. */
  readonly repositories: readonly string[];
}

/** What selectors of plans of a namespace depend on. */
export interface SelectorSources {
  readonly store: BlueprintStore;
  repositoryOf(name: string): Stored<Repository> | undefined;
  /** Undefined if the plan names no set of variants. */
  readonly variants: VariantReader | undefined;
}

/** The selectors of a plan, by what they depend on as it is read. */
export function planSelector(plan: WavePlan, { store, repositoryOf, variants }: SelectorSources): PlanSelector {
  const { namespace = DEFAULT_NAMESPACE } = plan.metadata;
  const { blueprint } = plan.spec.selector;
  const made = blueprint === undefined ? undefined : madeFrom(blueprint, namespace, store);
  const selecting = selectingOf(plan);
  const { selector } = nameSelectingOf(plan).spec;
  const isBy = (selects: typeof isSelectedBy, revision: PackageRevision) =>
    revision.namespace === namespace &&
    selects(
      selecting,
      revision,
      repositoryOf(revision.key.repository),
      variants && (() => variantSetsOf(variants, revision, namespace)),
    );
  return {
    isSelected: (revision) => isBy(isPermittedBy, revision) && made?.byKptfile(revision) !== false,
    isHeld: (revision) =>
      isBy(isSelectedBy, revision) && (made === undefined || made.byKptfile(revision) || made.byRecord(revision)),
    isHeldAsTarget: (revision) =>
      revision.namespace === namespace && selectsByName(selector, revision, repositoryOf(revision.key.repository)),
  };
}

/** What cannot be read of what decides which revisions a plan selects. */
export function unreadRepositories(
  { metadata: { namespace = DEFAULT_NAMESPACE }, spec: { selector } }: WavePlan,
  { repositories, hasRepository }: Pick<Selection, 'repositories' | 'hasRepository'>,
  store: Pick<RevisionStore, 'findRepository'>,
): UnreadRepositories {
  const isUnread = (name: string) => hasRepository(name) && store.findRepository(`${namespace}/${name}`) === undefined;
  const blueprint = selector.blueprint?.repository;
  return {
    blueprint: blueprint !== undefined && isUnread(blueprint) ? blueprint : undefined,
    selected: repositories.find(isUnread),
  };
}

/** Reads what the selectors of a plan depend on. */
export function readSelection(plan: WavePlan, options: SelectionOptions): Promise<Selection> {
  return selections(plan.metadata.namespace, options)(plan);
}

/** Reads the selections of plans of a namespace. What several of them depend on is read once, however many there are. */
export function selections(
  namespace = DEFAULT_NAMESPACE,
  { client, store }: SelectionOptions,
): (plan: WavePlan) => Promise<Selection> {
  const repositoriesOnce = once(async () => {
    const { items } = await client.list(repositoryKind, { namespace });
    return new Map(items.map((one) => [one.metadata.name, one]));
  });
  const variantsOnce = once(() => readVariants(namespace, client));
  return async (plan) => {
    const { spec } = plan;
    const repositories = await repositoriesOnce();
    const variants = spec.selector.variantSet === undefined ? undefined : await variantsOnce();
    const repositoryOf = (name: string) => repositories.get(name);
    return {
      ...planSelector(plan, { store, repositoryOf, variants }),
      placeOf: (revision) => placeInPlan(spec, revision, repositoryOf(revision.key.repository)),
      hasRepository: (name) => repositories.has(name),
      repositoryOf,
      repositories: [...repositories.keys()].filter((name) => spec.selector.repositories?.includes(name) ?? true),
    };
  };
}

async function readVariants(namespace: string, client: Client): Promise<VariantReader> {
  const variants = (await unlessMissing(client.list(packageVariantKind, { namespace })))?.items ?? [];
  const sets = (await unlessMissing(client.list(packageVariantSetKind, { namespace })))?.items ?? [];
  const [byKey, setByKey] = [new Map(variants.map(withKey)), new Map(sets.map(withKey))];
  const ofPackage = Map.groupBy(variants, ({ spec: { downstream } }) => `${downstream.repo}/${downstream.package}`);
  return {
    variant: (key) => byKey.get(keyText(key)),
    variantsOf: (_namespace, downstream) => ofPackage.get(`${downstream.repo}/${downstream.package}`) ?? [],
    set: (key) => setByKey.get(keyText(key)),
  };
}

function withKey<T extends Stored>(object: T): [string, T] {
  return [keyText(keyOf(object)), object];
}

function once<Result>(read: () => Promise<Result>): () => Promise<Result> {
  let result: Promise<Result> | undefined;
  return () => {
    result ??= read();
    return result;
  };
}
