import { conditionsOf } from '../../../../kptfile-schema/index.ts';
import type { DeliveredPackages } from '../../../../src/delivery/delivered/delivered-packages.ts';
import { wantedRevision } from '../../../../src/delivery/status/awaited-targets.ts';
import { deploymentsOf } from '../../../../src/delivery/status/revision-deployments.ts';
import { isSluiceError } from '../../../../src/foundation/sluice-error.ts';
import { canonicalJson } from '../../../../src/foundation/text/canonical-json.ts';
import type { KrmObject } from '../../../../src/package/model/krm/krm.ts';
import { formatConditionType } from '../../../../src/package/model/policy/condition-type.ts';
import { verdictOf } from '../../../../src/package/model/record/record.ts';
import {
  isPublished,
  type PackageRevision,
  revisionId,
} from '../../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import type { Repository } from '../../../../src/resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { labelSelector, matchesLabels } from '../../../../src/resource/selector/label-selector.ts';
import type { Dependency } from './dependency-object.ts';

/** Label of a Repository whose name is not that of the cluster that it is for. */
const CLUSTER_LABEL = 'nephio.org/cluster-name';
/** Packages that one Dependency can select. */
export const MAX_PROVIDERS = 200;

export interface ProviderWorld {
  readonly store: Pick<RevisionStore, 'list' | 'content' | 'evaluate'>;
  readonly repositoryOf: (key: { readonly namespace: string; readonly name: string }) => Repository | undefined;
  /** Of a namespace. */
  readonly targets: (namespace: string) => readonly DeliveryTarget[];
  readonly delivered: DeliveredPackages;
}

/** A package that a Dependency selects, in the required state, with the objects to inject. */
export interface Provider {
  readonly revision: PackageRevision;
  readonly objects: readonly KrmObject[];
}

export interface Selection {
  /** In the order of repositories and packages. */
  readonly ready: readonly Provider[];
  /** Selected packages that are not in the required state, with the reason. */
  readonly waiting: readonly { readonly id: string; readonly message: string }[];
}

/** `<repository>/<package>`; the name of a repository has no slash. */
export function packageId({ key }: Pick<PackageRevision, 'key'>): string {
  return `${key.repository}/${key.package}`;
}

/**
 * The packages that a Dependency of `consumer` selects: those with its name, in deployment repositories of the namespace, or in those that its
 * selectors match; never the package itself. Of each, the latest published revision counts; one that was published out of band is a claim.
 */
export async function selectProviders(
  dependency: Dependency,
  consumer: PackageRevision,
  world: ProviderWorld,
): Promise<Selection> {
  const { namespace } = consumer;
  const packages = Map.groupBy(
    world.store
      .list({ package: dependency.packageName })
      .filter((row) => row.namespace === namespace && packageId(row) !== packageId(consumer)),
    packageId,
  );
  const ready: Provider[] = [];
  const waiting: { id: string; message: string }[] = [];
  const ids = [...packages.keys()].sort().filter((id) => {
    const [repository = ''] = id.split('/', 1);
    return isSelected(dependency, repository, world.repositoryOf({ namespace, name: repository }));
  });
  for (const id of ids.slice(0, MAX_PROVIDERS)) {
    const latest = packages.get(id)?.find((row) => row.latest && isPublished(row));
    const provider = latest === undefined ? `${id} is not published` : await readProvider(dependency, latest, world);
    if (typeof provider === 'string') waiting.push({ id, message: provider });
    else ready.push(provider);
  }
  for (const id of ids.slice(MAX_PROVIDERS, MAX_PROVIDERS + 1))
    waiting.push({ id, message: `more than ${MAX_PROVIDERS} packages are selected; select fewer with spec.selector` });
  return { ready, waiting };
}

function isSelected({ spec: { selector } }: Dependency, repository: string, object: Repository | undefined): boolean {
  const labels = object?.metadata.labels ?? {};
  if (selector.cluster !== undefined && selector.cluster !== (labels[CLUSTER_LABEL] ?? repository)) return false;
  if (selector.repositories !== undefined) return matchesLabels(labelSelector(selector.repositories), labels);
  return selector.cluster !== undefined || object?.spec.deployment === true;
}

/** The provider, or why it is not in the required state. */
async function readProvider(
  { spec: { state, conditionType = '', injectors } }: Dependency,
  revision: PackageRevision,
  world: ProviderWorld,
): Promise<Provider | string> {
  const what = `${packageId(revision)} v${revision.revision}`;
  if (revision.outOfBand !== undefined) return `${what} was published out of band (${revision.outOfBand.reason})`;
  if (state === 'Deployed') {
    const problem = deploymentProblem(revision, world);
    if (problem !== undefined) return `${what} ${problem}`;
  }
  if (state === 'Condition' && !(await isTrue(conditionType, revision, world)))
    return `${what} has no condition ${conditionType} that is True`;
  if (injectors.length === 0) return { revision, objects: [] };
  const objects: KrmObject[] = [];
  const known = await contentOf(world, revision);
  if (known === undefined) return `${what} cannot be read now`;
  for (const { apiVersion, kind } of injectors) {
    if (kind === 'Secret') return `${what}: a Secret of another package is not injected`;
    const found = known.filter((object) => object.apiVersion === apiVersion && object.kind === kind);
    if (found.length === 0) return `${what} contains no ${kind} of ${apiVersion}`;
    for (const object of found) {
      // Nephio's functions set a condition for each object that they complete; other packages have none.
      const condition = revision.kptfile && conditionsOf(revision.kptfile).get(formatConditionType(object));
      if (condition !== undefined && condition.status !== 'True')
        return `${what}: ${formatConditionType(object)} is not True`;
      objects.push(object);
    }
  }
  return { revision, objects: objects.sort((a, b) => (identity(a) < identity(b) ? -1 : 1)) };
}

/** True for a condition that was issued for this publication: what its authors wrote into the Kptfile does not count. */
async function isTrue(type: string, revision: PackageRevision, { store }: ProviderWorld): Promise<boolean> {
  if (revision.kptfile === undefined || conditionsOf(revision.kptfile).get(type)?.status !== 'True') return false;
  try {
    const { record } = await store.evaluate(revisionId(revision));
    return verdictOf(record, type)?.status === 'True';
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'LimitExceeded')) return false;
    throw error;
  }
}

/** Undefined for a provider that was deleted in the meantime; the event about that wakes its consumers. */
async function contentOf(
  { store }: ProviderWorld,
  revision: PackageRevision,
): Promise<readonly KrmObject[] | undefined> {
  try {
    return (await store.content(revisionId(revision))).objects();
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'LimitExceeded')) return undefined;
    throw error;
  }
}

function identity({ apiVersion, kind, namespace = '', name, value }: KrmObject): string {
  return canonicalJson([apiVersion, kind, namespace, name, value]);
}

/**
 * Why a revision does not count as deployed: a target must deliver it, each one that selects it must have delivered it, and the engine of each that
 * delivers it must report it as healthy. The text changes with the state only: it becomes part of a commit.
 */
export function deploymentProblem(
  revision: PackageRevision,
  { targets, delivered, repositoryOf }: Pick<ProviderWorld, 'targets' | 'delivered' | 'repositoryOf'>,
): string | undefined {
  const { namespace, key } = revision;
  const present = targets(namespace);
  const deployments = deploymentsOf(revision, present, delivered);
  if (deployments.length === 0) return 'is not delivered by any target';
  const repository = repositoryOf({ namespace, name: key.repository });
  // Targets select by its labels.
  if (repository === undefined) return `is of the repository ${key.repository}, which is not registered`;
  const missing = present.find((target) => {
    const wanted = wantedRevision(target, revision, repository);
    return wanted !== undefined && delivered.find(target, key)?.revision !== wanted;
  });
  if (missing !== undefined) return `is not delivered by target ${missing.metadata.name} yet`;
  const bad = deployments.find(({ synced, healthy }) => synced !== 'True' || healthy !== 'True');
  return bad === undefined ? undefined : `is not reported as synced and healthy at target ${bad.target}`;
}
