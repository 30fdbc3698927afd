import { unlessMissing } from '../../src/foundation/sluice-error.ts';
import { isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { isVariantOf, ownsPackage, selectsForApproval } from '../../src/package/store/selected-packages.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type PackageVariant, packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import type { WavePlan } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { DEFAULT_NAMESPACE, type Stored } from '../../src/resource/object/object.ts';
import { type PlaceInPlan, placeInPlan } from '../../src/rollout/wave/plan-selection.ts';

export interface SelectionOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'list' | 'dependentsOf'>;
}

/** Which revisions of the namespace of a plan its selectors match. */
export interface Selection {
  /** True if the selector of the plan matches. */
  isSelected(revision: PackageRevision): boolean;
  /** Where the plan puts a revision that it selects. */
  placeOf(revision: PackageRevision): PlaceInPlan;
  /** True for a repository that is registered. */
  hasRepository(name: string): boolean;
  /** Names of the registered repositories that the plan may select revisions of. */
  readonly repositories: readonly string[];
}

/** Reads what the selectors of a plan depend on. */
export async function readSelection(plan: WavePlan, { client, store }: SelectionOptions): Promise<Selection> {
  const { namespace = DEFAULT_NAMESPACE } = plan.metadata;
  const { selector } = plan.spec;
  const { variantSet, blueprint, ...packages } = selector;
  const { items } = await client.list(repositoryKind, { namespace });
  const repositories = new Map(items.map((one) => [one.metadata.name, one]));
  const variants = variantSet === undefined ? undefined : await variantsOf(variantSet, namespace, client);
  const dependents = blueprint === undefined ? undefined : dependentsOf(blueprint, namespace, store);
  return {
    isSelected: (revision) =>
      revision.namespace === namespace &&
      selectsForApproval(packages, revision, repositories.get(revision.key.repository)) &&
      (dependents === undefined || dependents.has(revision.name)) &&
      (variants === undefined || variants(revision).some((variant) => ownsPackage(variant, revision))),
    placeOf: (revision) => placeInPlan(plan.spec, revision, repositories.get(revision.key.repository)),
    hasRepository: (name) => repositories.has(name),
    repositories: [...repositories.keys()].filter((name) => packages.repositories?.includes(name) ?? true),
  };
}

/** The variants of a set, by the package of a revision. */
async function variantsOf(
  name: string,
  namespace: string,
  client: Client,
): Promise<(revision: PackageRevision) => readonly Stored<PackageVariant>[]> {
  const set = await unlessMissing(client.find(packageVariantSetKind, { namespace, name }));
  const found = set === undefined ? undefined : await unlessMissing(client.list(packageVariantKind, { namespace }));
  const own = (found?.items ?? []).filter((variant) => set !== undefined && isVariantOf(variant, set));
  const byPackage = Map.groupBy(own, ({ spec: { downstream } }) => `${downstream.repo}/${downstream.package}`);
  return ({ key }) => byPackage.get(`${key.repository}/${key.package}`) ?? [];
}

/** The names of the revisions that were cloned from, or upgraded to, the blueprint. */
function dependentsOf(
  { repository, package: path, revision: number }: NonNullable<WavePlan['spec']['selector']['blueprint']>,
  namespace: string,
  store: SelectionOptions['store'],
): ReadonlySet<string> {
  const versions = store
    .list({ repository: `${namespace}/${repository}`, package: path })
    .filter((one) => isPublished(one) && (number === undefined || one.revision === number));
  return new Set(versions.flatMap((version) => store.dependentsOf(version)));
}
