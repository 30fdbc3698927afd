import type { DeliveredPackages } from '../../../src/delivery/delivered/delivered-packages.ts';
import { type AwaitedRevision, wantedRevision } from '../../../src/delivery/status/awaited-targets.ts';
import { currentDeploymentOf, deploymentOf } from '../../../src/delivery/status/target-deployment.ts';
import { cleanText } from '../../../src/foundation/text/clean-text.ts';
import type { Repository } from '../../../src/resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import type { WaveTarget } from '../../../src/resource/kinds/sluice/wave/wave-target.ts';
import { findCondition } from '../../../src/resource/object/condition.ts';
import type { Verification } from '../../../src/rollout/wave/observation.ts';
import { BLOCKING_REASONS, refusalIn } from '../../delivery/delivery-report.ts';

const VERIFIED: Verification = { result: 'Verified' };
/** Of what a target says about its delivery. */
const MAX_MESSAGE_CHARACTERS = 400;
/** Of a target whose message depends on no package. */
const STABLE_REASONS: ReadonlySet<string | undefined> = BLOCKING_REASONS;

/** What the verification by engines depends on beside the revision. */
export interface VerifyOptions {
  /** Restricts the targets. Default: all that select the package. */
  readonly names: readonly string[] | undefined;
  /** Those of the namespace of the revision. */
  readonly targets: readonly DeliveryTarget[];
  readonly delivered: DeliveredPackages;
  /** Of the revision. */
  readonly repository: Repository | undefined;
}

/**
 * Whether each target that selects the published revision has delivered it, and the engines of all that deliver it report it as synced and
 * healthy.
 */
export function verifyDeployed(
  revision: AwaitedRevision,
  { names, targets, delivered, repository }: VerifyOptions,
): Verification {
  const { key, revision: number } = revision;
  const present = targets.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const meant = names === undefined ? present : present.filter(({ metadata }) => names.includes(metadata.name));
  const missing = names?.find((name) => !present.some(({ metadata }) => metadata.name === name));
  if (missing !== undefined) return { result: 'Pending', message: `there is no DeliveryTarget ${missing}` };
  const results = meant.flatMap((target): Verification[] => {
    const { name } = target.metadata;
    const isOfPackage = (one: { readonly repository: string; readonly package: string; readonly from: number }) =>
      one.repository === key.repository && one.package === key.package && one.from === number;
    const back = target.status?.rollbacks?.find(isOfPackage);
    if (back !== undefined)
      return [{ result: 'Failed', message: `target ${name} went back from v${number} to v${back.to}: ${back.reason}` }];
    const found = delivered.find(target, key);
    if (found === undefined || found.revision < number) {
      const wanted = names === undefined ? wantedRevision(target, revision, repository) : number;
      return wanted === undefined || found?.revision === wanted ? [] : [undelivered(target, revision, wanted)];
    }
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

/**
 * Of a target that is suspended, or that cannot be reached, it is not known when it delivers: what its clusters have stays unknown.
 * All packages that wait for a target have such a reason. It stays while other packages of the target are delivered or refused, so that it
 * is not written for each of them then.
 */
function undelivered(
  { metadata, spec, status }: DeliveryTarget,
  { key }: AwaitedRevision,
  revision: number,
): Verification {
  const what = `target ${metadata.name} does not deliver v${revision} yet`;
  if (spec.suspend === true) return { result: 'Unreachable', message: `${what}: it is suspended (spec.suspend)` };
  const ready = findCondition(status?.conditions, 'Ready');
  if (ready === undefined || ready.status === 'True') return { result: 'Pending', message: what };
  const isBlocked = STABLE_REASONS.has(ready.reason);
  const cause = isBlocked ? ready.message : ready.reason === 'Partial' ? refusalIn(ready.message, key) : undefined;
  const message = cleanText(`${what}: ${cause || ready.reason}`, MAX_MESSAGE_CHARACTERS);
  return { result: ready.reason === 'Error' ? 'Unreachable' : 'Pending', message };
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
