import type { DeliveredPackages } from '../../../src/delivery/delivered/delivered-packages.ts';
import { currentDeploymentOf, deploymentOf } from '../../../src/delivery/status/target-deployment.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import type { WaveTarget } from '../../../src/resource/kinds/sluice/wave/wave-target.ts';
import { findCondition } from '../../../src/resource/object/condition.ts';
import type { Verification } from '../../../src/rollout/wave/observation.ts';

const VERIFIED: Verification = { result: 'Verified' };

/**
 * Whether the engines report the published revision as synced and healthy at each target that delivers its package. `names` restricts
 * the targets; `targets` are those of the namespace of the revision.
 */
export function verifyDeployed(
  { key, revision }: Pick<PackageRevision, 'key' | 'revision'>,
  names: readonly string[] | undefined,
  targets: readonly DeliveryTarget[],
  delivered: DeliveredPackages,
): Verification {
  const meant = names === undefined ? targets : targets.filter(({ metadata }) => names.includes(metadata.name));
  const missing = names?.find((name) => !targets.some(({ metadata }) => metadata.name === name));
  if (missing !== undefined) return { result: 'Pending', message: `there is no DeliveryTarget ${missing}` };
  const results = meant.flatMap((target): Verification[] => {
    const { name } = target.metadata;
    const isOfPackage = (one: { readonly repository: string; readonly package: string; readonly from: number }) =>
      one.repository === key.repository && one.package === key.package && one.from === revision;
    const back = target.status?.rollbacks?.find(isOfPackage);
    if (back !== undefined)
      return [
        { result: 'Failed', message: `target ${name} went back from v${revision} to v${back.to}: ${back.reason}` },
      ];
    const found = delivered.find(target, key);
    if (found === undefined && names === undefined) return [];
    if (found === undefined || found.revision < revision)
      return [{ result: 'Pending', message: `target ${name} does not deliver v${revision} yet` }];
    const deployment = currentDeploymentOf(target, delivered.of(target));
    if (deployment === undefined) {
      const why = target.spec.engine === undefined ? 'it has no spec.engine' : 'its engine was not read yet';
      return [{ result: 'Unreachable', message: `nothing is known of target ${name}: ${why}` }];
    }
    const { synced, healthy } = deploymentOf(deployment, key);
    if (synced.status === 'True' && healthy.status === 'True') return [VERIFIED];
    const bad = synced.status === 'True' ? healthy : synced;
    const message = `target ${name}: ${bad.reason}${bad.message === '' ? '' : `: ${bad.message}`}`;
    if (synced.status === 'Unknown' || healthy.status === 'Unknown') return [{ result: 'Unreachable', message }];
    return [{ result: healthy.status === 'False' && synced.status === 'True' ? 'Degraded' : 'Pending', message }];
  });
  if (results.length === 0) return { result: 'Pending', message: 'no DeliveryTarget delivers it yet' };
  return worstOf(results);
}

const BADNESS = ['Failed', 'Degraded', 'Unreachable', 'Pending', 'Verified'] as const;

function worstOf(results: readonly Verification[]): Verification {
  return results.reduce((a, b) => (BADNESS.indexOf(b.result) < BADNESS.indexOf(a.result) ? b : a));
}

/** What an external program has set for the target. With observedGeneration it says which published revision it is about. */
export function verifyCondition({ status }: WaveTarget, type: string, published: number): Verification {
  const condition = findCondition(status?.conditions, type);
  if (condition === undefined) return { result: 'Pending', message: `the condition ${type} is not set` };
  const text = [condition.reason, condition.message].filter((part) => part !== '').join(': ');
  const about = condition.observedGeneration;
  if (about !== undefined && about !== published)
    return { result: 'Pending', message: `the condition ${type} is about v${about}, not v${published}` };
  if (condition.status === 'True') return VERIFIED;
  const message = `the condition ${type} is ${condition.status}${text === '' ? '' : ` (${text})`}`;
  return { result: condition.status === 'False' ? 'Failed' : 'Pending', message };
}
