import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { parseDuration } from '../../resource/object/duration.ts';
import { type DeliveredPackage, isAbout } from '../delivered/delivered-package.ts';
import { packageKey } from '../selection/select-revisions.ts';
import {
  currentDeployment,
  deploymentOf,
  type PackageName,
  type TimedDeployment,
} from '../status/target-deployment.ts';

/** States that support the statement that the delivered content itself fails. All others, such as Unknown or Blocked, do not. */
const FAILING_HEALTH: ReadonlySet<string> = new Set(['Degraded', 'Missing']);
const DEPLOYED: ReadonlySet<string> = new Set(['Synced', 'Failed']);

/** A package that is unhealthy without interruption. */
export interface Observation {
  readonly revision: number;
  readonly commit: string;
  /** Milliseconds of a clock that never jumps. */
  readonly since: number;
}

/** By `packageKey`. Kept between decisions; without it the time starts again. */
export type Observations = ReadonlyMap<string, Observation>;

export interface DueRollback {
  readonly delivered: DeliveredPackage;
  /** What the engine reports of it. */
  readonly state: TimedDeployment;
}

export interface RollbackDecision {
  readonly observations: Observations;
  /** Packages that have been unhealthy for long enough. */
  readonly due: readonly DueRollback[];
  /** Milliseconds until another one can be due. */
  readonly nextMs: number | undefined;
}

export interface DecisionContext {
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs: number;
  /** The highest published revision of a package; undefined if it is not known. */
  readonly highestOf: (name: PackageName) => number | undefined;
}

const NOTHING: RollbackDecision = { observations: new Map(), due: [], nextMs: undefined };

/**
 * The packages of a target that are due for a rollback. Only the highest revision of a package is rolled back, once: a package that has a
 * rollback or a pin is left as it is, so that a failure that the earlier revision shares does not lead further back. Time counts only
 * while Sluice observes the failure, so that neither a jump of the wall clock nor a pause of the process shortens it. Of packages that share
 * a report, only those count that were not healthy yet with the content that they have; one whose healthy content the repository no longer
 * has cannot be compared, and does not count.
 */
export function decideRollbacks(
  { spec, status }: Pick<DeliveryTarget, 'spec' | 'status'>,
  packages: readonly DeliveredPackage[],
  before: Observations,
  { monotonicMs, highestOf }: DecisionContext,
): RollbackDecision {
  const limit = spec.rollback && parseDuration(spec.rollback.unhealthyAfter);
  const deployment = currentDeployment({ status });
  if (limit === undefined || deployment === undefined || spec.suspend === true) return NOTHING;
  // The worst state of a package, so that a healthy target of thousands of packages costs nothing.
  if (deployment.healthy.status !== 'False') return NOTHING;
  // A failure of the delivery before says nothing about a package that has changed since.
  if (!isAbout(status, packages)) return NOTHING;
  const excluded = new Set([...(spec.pins ?? []), ...(status?.rollbacks ?? [])].map(packageKey));
  const observations = new Map<string, Observation>();
  const due: DueRollback[] = [];
  let nextMs: number | undefined;
  for (const delivered of packages) {
    const state = deploymentOf(deployment, delivered);
    const key = packageKey(delivered);
    if (!isFailing(state) || isProven(state) || excluded.has(key) || highestOf(delivered) !== delivered.revision)
      continue;
    const { revision, commit } = delivered;
    const last = before.get(key);
    const isSame = last?.revision === revision && last.commit === commit && last.since <= monotonicMs;
    const since = isSame ? last.since : monotonicMs;
    observations.set(key, { revision, commit, since });
    const left = since + limit - monotonicMs;
    if (left <= 0) due.push({ delivered, state });
    else nextMs = Math.min(nextMs ?? left, left);
  }
  return { observations, due, nextMs };
}

function isFailing({ synced, healthy }: TimedDeployment): boolean {
  return healthy.status === 'False' && FAILING_HEALTH.has(healthy.reason) && DEPLOYED.has(synced.reason);
}

/**
 * True if a report that is not about this package alone fails although the package was healthy with its content: the cause is another one.
 * The content that was healthy is kept without `wasHealthy` while it cannot be compared: it may be the present one.
 */
function isProven({ isShared, wasHealthy, healthyTree }: TimedDeployment): boolean {
  return isShared === true && (wasHealthy === true || healthyTree !== undefined);
}
