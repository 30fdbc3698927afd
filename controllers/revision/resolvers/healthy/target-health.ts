import { type DeliveredPackage, deliveredCount } from '../../../../src/delivery/delivered/delivered-package.ts';
import type { DeliveredPackages } from '../../../../src/delivery/delivered/delivered-packages.ts';
import { packageKey } from '../../../../src/delivery/selection/select-revisions.ts';
import {
  currentDeployment,
  currentDeploymentOf,
  deploymentOf,
} from '../../../../src/delivery/status/target-deployment.ts';
import type { IssuedCondition } from '../../../../src/package/model/gates/verdict.ts';
import type { PackageRevision } from '../../../../src/package/model/revision/package-revision.ts';
import type { DeliveryTarget } from '../../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { describeEngine, HEALTHY_PREFIX } from '../../../../src/resource/kinds/sluice/delivery/engine-settings.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText } from '../../../../src/resource/object/object.ts';

/** Types of conditions on the health of a target: the prefix with the name of the target. */
export const HEALTHY_TYPES = 'sluice.dev/Healthy.*';
/** Annotation of a package: the packages of the target that must be healthy, in place of all, such as `core/amf, core/smf`. */
export const HEALTHY_PACKAGES_ANNOTATION = 'sluice.dev/healthy-packages';
const MAX_PACKAGES = 100;
/** Of the external fact of a verdict that names the engine, and the version of the Secret by which it is read. */
export const ENGINE_SOURCE = 'spec.engine';

export function isHealthyType(type: string): boolean {
  return type.startsWith(HEALTHY_PREFIX) && type.length > HEALTHY_PREFIX.length;
}

/**
 * A package without its repository, or `<repository>/<package>`; none for all packages. The annotation narrows the gates of the package
 * itself only: its authors must not weaken a gate that a policy requires.
 */
export function wantedPackages(
  { kptfile, record }: Pick<PackageRevision, 'kptfile' | 'record'>,
  isRequiredByPolicy: boolean,
): readonly string[] {
  if (isRequiredByPolicy) return [];
  const text =
    kptfile?.metadata?.annotations?.[HEALTHY_PACKAGES_ANNOTATION] ?? record?.annotations?.[HEALTHY_PACKAGES_ANNOTATION];
  const names = (text ?? '').split(/[\s,]+/).filter((name) => name !== '');
  return [...new Set(names)].slice(0, MAX_PACKAGES);
}

/**
 * The condition of a type: True while all packages of the target, or the wanted ones, are healthy in the last delivery. The message has
 * no counts and no texts of the engine: each change of it would be a commit on the draft.
 */
export function healthCondition(
  type: string,
  targets: readonly DeliveryTarget[],
  namespace: string | undefined,
  wanted: readonly string[],
  delivered: DeliveredPackages,
): IssuedCondition {
  const name = type.slice(HEALTHY_PREFIX.length);
  const target = targets.find(
    ({ metadata }) =>
      metadata.name === name && (metadata.namespace ?? DEFAULT_NAMESPACE) === (namespace ?? DEFAULT_NAMESPACE),
  );
  const condition = (status: IssuedCondition['status'], reason: string, message: string): IssuedCondition => ({
    ...{ type, status, reason, message, inputs: ['content'] },
  });
  if (target === undefined)
    return condition('Unknown', 'TargetMissing', `there is no target ${name} in the namespace of the package`);
  if (target.spec.engine === undefined)
    return condition('Unknown', 'NotReported', `target ${name} has no spec.engine, so that its health is not read`);
  const packages = delivered.of(target);
  const deployment = currentDeploymentOf(target, packages);
  if (deployment === undefined)
    return condition('Unknown', 'Stale', `the health of target ${name} is not read since its last delivery`);
  const settings = describeEngine(target.spec.engine, target.spec.git);
  if (deployment.engine?.settings !== settings)
    return condition('Unknown', 'Stale', `the health of target ${name} is not read from its present engine yet`);
  const states = wanted.length === 0 ? [deployment.healthy] : [];
  for (const path of wanted) {
    const found = namesIn(packages).get(path);
    if (found === undefined)
      return condition('False', 'NotDelivered', `target ${name} does not deliver package ${path}`);
    states.push(deploymentOf(deployment, found).healthy);
  }
  const worst = states.find(({ status }) => status === 'False') ?? states.find(({ status }) => status === 'Unknown');
  const subject = wanted.length === 0 ? `all packages of target ${name}` : `${wanted.join(', ')} at target ${name}`;
  const since =
    states
      .map((state) => state.since)
      .sort()
      .at(-1) ?? '';
  const external = [
    { source: `DeliveryTarget ${keyText(keyOf(target))}`, id: subject, value: worst?.reason ?? 'Healthy', time: since },
    { source: ENGINE_SOURCE, id: settings, value: deployment.engine.version || 'without a kubeconfig', time: since },
  ];
  if (worst === undefined) return { ...condition('True', 'Healthy', `${subject} are healthy`), external };
  const next = `"sluice target get ${name} --unhealthy" lists what is not`;
  return { ...condition(worst.status, worst.reason, `not ${subject} are healthy; ${next}`), external };
}

const indexes = new WeakMap<readonly DeliveredPackage[], ReadonlyMap<string, DeliveredPackage>>();

/** The packages of a target by the names that `wantedPackages` can have; of two with one name the first. Computed once for a list. */
function namesIn(packages: readonly DeliveredPackage[]): ReadonlyMap<string, DeliveredPackage> {
  const known = indexes.get(packages);
  if (known !== undefined) return known;
  const byName = new Map<string, DeliveredPackage>();
  for (const one of packages)
    for (const name of [one.package, packageKey(one)]) if (!byName.has(name)) byName.set(name, one);
  indexes.set(packages, byName);
  return byName;
}

/** What conditions on a target depend on in the target itself; the same text means that none changes. */
export function healthKey(target: DeliveryTarget): string {
  const deployment = currentDeployment(target);
  const part = (state: { readonly status: string; readonly reason: string } | undefined) => [
    state?.status,
    state?.reason,
  ];
  return JSON.stringify([
    target.spec.engine && describeEngine(target.spec.engine, target.spec.git),
    deployment?.engine,
    part(deployment?.healthy),
    part(deployment?.common.healthy),
    deployment?.packages?.map((one) => [one.repository, one.package, ...part(one.healthy)]),
    deliveredCount(target.status),
    // Decides whether the report is about the packages that are delivered now.
    target.status?.packagesDigest,
  ]);
}
