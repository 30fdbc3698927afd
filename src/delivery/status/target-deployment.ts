import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { type DeliveredPackage, deliveredCount, isAbout } from '../delivered/delivered-package.ts';
import { packageKey } from '../selection/select-revisions.ts';
import type { PackageDeployment } from './deployment-state.ts';
import { type DeploymentState, state } from './engine-report.ts';
import { engineText } from './engine-values.ts';

export type TargetDeployment = NonNullable<NonNullable<DeliveryTarget['status']>['deployment']>;
export type TimedState = TargetDeployment['synced'];
type ListedPackage = NonNullable<TargetDeployment['packages']>[number];
/** `synced` and `healthy` of a package, each with the time since when. */
export interface TimedDeployment {
  readonly synced: TimedState;
  readonly healthy: TimedState;
  /** True if the engine reported this content as healthy before. Absent while it is healthy. */
  readonly wasHealthy?: boolean | undefined;
  /** A tree of the target's directory in which the package has the content that the engine reported as healthy last. */
  readonly healthyTree?: string | undefined;
  /** True if the report is about other manifests too. Absent while it is healthy. */
  readonly isShared?: boolean | undefined;
}

export interface PackageName {
  readonly repository: string;
  readonly package: string;
}

/** Packages that the status lists because their state differs from the common one; more would not fit into an object of etcd. */
export const MAX_LISTED_PACKAGES = 1000;
/** Packages that the status lists because they reached the common state later than the others. */
const MAX_RECENT_PACKAGES = 100;
const MAX_LISTED_MESSAGE_CHARACTERS = 240;
/** Packages that a message names. */
const MAX_NAMED = 3;

/** The state of packages that differ from the common one, and are too many to list. */
const UNLISTED: DeploymentState = state(
  'Unknown',
  'NotReported',
  `more than ${MAX_LISTED_PACKAGES} packages of the target have another state; see its engine`,
);

/** The report about the last delivery of a target; undefined while there is none yet. */
export function currentDeployment({ status }: Pick<DeliveryTarget, 'status'>): TargetDeployment | undefined {
  const { deployment, lastCommit } = status ?? {};
  return deployment?.commit === lastCommit ? deployment : undefined;
}

/**
 * The report about the last delivery of a target, if that is the delivery of these packages, which are those of `DeliveredPackages`. A report
 * about the delivery before says nothing about a package that has changed since.
 */
export function currentDeploymentOf(
  { status }: Pick<DeliveryTarget, 'status'>,
  packages: readonly DeliveredPackage[],
): TargetDeployment | undefined {
  return isAbout(status, packages) ? currentDeployment({ status }) : undefined;
}

const indexes = new WeakMap<TargetDeployment, ReadonlyMap<string, ListedPackage>>();

/** The state of one package in the status of a target. */
export function deploymentOf(deployment: TargetDeployment, name: PackageName): TimedDeployment {
  const index = indexes.get(deployment) ?? new Map((deployment.packages ?? []).map((one) => [packageKey(one), one]));
  indexes.set(deployment, index);
  const listed = index.get(packageKey(name));
  if (listed !== undefined) return listed;
  if (deployment.unlisted === undefined) return deployment.common;
  const { since, healthyTree } = deployment.unlisted;
  const history = healthyTree === undefined ? {} : { healthyTree };
  return { synced: { ...UNLISTED, since }, healthy: { ...UNLISTED, since }, ...history };
}

/**
 * A tree of the target's directory, or a commit, in which the package has the content that the engine reported as healthy last; undefined
 * if it never did.
 */
export function healthyContent(deployment: TargetDeployment, name: PackageName): string | undefined {
  const { healthy, wasHealthy, healthyTree } = deploymentOf(deployment, name);
  if (healthyTree !== undefined) return healthyTree;
  // A status of an earlier version.
  return healthy.status === 'True' || wasHealthy === true ? deployment.commit : undefined;
}

type Untimed = Pick<TimedState, 'status' | 'reason' | 'message'>;

/** `next` with the time since when its status holds, which never goes back, whatever the clock does. `now` is RFC 3339. */
function timed(next: Untimed, before: TimedState | undefined, now: string): TimedState {
  if (before === undefined) return { ...next, since: now };
  if (before.status === next.status) return { ...next, since: before.since };
  return { ...next, since: laterOf(now, before.since) };
}

function laterOf(one: string, other: string): string {
  return Date.parse(other) > Date.parse(one) ? other : one;
}

/** A package with what was delivered of it, and its state. */
export interface EvaluatedPackage extends PackageName, Pick<PackageDeployment, 'synced' | 'healthy'> {
  /** True if an object of the engine that reports the package deploys other manifests too. */
  readonly isShared?: boolean;
  /** True if the delivered content is the `healthyContent` of the report before; undefined if they could not be compared. */
  readonly isUnchanged?: boolean | undefined;
}

export interface TargetDeploymentOptions {
  readonly delivered: Untimed;
  /** What the reports were read from. */
  readonly engine?: TargetDeployment['engine'];
  /** Of the delivery. */
  readonly commit: string | undefined;
  /** The tree of the target's directory in `commit`; undefined if it was not read. */
  readonly tree?: string | undefined;
  readonly objects: TargetDeployment['objects'];
  readonly before: TargetDeployment | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * The states of a target's packages as its status keeps them: the most frequent state once, and each package with another one. Packages
 * that reached the common state at different times share the latest of them, apart from the most recent ones: `since` never goes back.
 */
export function targetDeployment(
  packages: readonly EvaluatedPackage[],
  { delivered, engine, commit, tree, objects, before, now }: TargetDeploymentOptions,
): TargetDeployment {
  const time = new Date(now).toISOString();
  const listed: ListedPackage[] = packages.map((one) => {
    const { repository, package: path, synced, healthy } = one;
    const previous = before && deploymentOf(before, { repository, package: path });
    return {
      ...{ repository, package: path },
      synced: timed(brief(synced), previous?.synced, time),
      healthy: timed(brief(healthy), previous?.healthy, time),
      ...historyOf(one, before && healthyContent(before, one), tree),
    };
  });
  const groups = Map.groupBy(listed, textOf);
  const [common = []] = [...groups.values()].sort((a, b) => b.length - a.length);
  const recent = recentOf(common);
  const shared = common.filter((one) => !recent.has(one));
  const isShared = new Set(shared);
  const others = listed.filter((one) => !isShared.has(one));
  const isLarge = others.length > MAX_LISTED_PACKAGES;
  const kept = isLarge ? others.toSorted(worstFirst(common[0]?.healthyTree)).slice(0, MAX_LISTED_PACKAGES) : others;
  const isKept = new Set(kept);
  const unlisted = others.filter((one) => !isKept.has(one));
  const total = (of: (one: ListedPackage) => TimedState, word: string, previous: TimedState | undefined) =>
    timed(totalOf(listed, of, word), previous, time);
  return {
    ...(commit === undefined ? {} : { commit }),
    ...(engine === undefined ? {} : { engine }),
    delivered: timed(delivered, before?.delivered, time),
    synced: total(({ synced }) => synced, 'synced', before?.synced),
    healthy: total(({ healthy }) => healthy, 'healthy', before?.healthy),
    common: commonOf(shared, before, time),
    ...(kept.length === 0 ? {} : { packages: others.filter((one) => isKept.has(one)) }),
    ...(unlisted.length === 0 ? {} : { unlisted: unlistedOf(unlisted, shared) }),
    ...(objects === undefined || objects.length === 0 ? {} : { objects }),
  };
}

/** A success needs no text, and with the name of an object in it each package would have a state of its own. */
function brief({ status, reason, message }: DeploymentState): DeploymentState {
  if (status === 'True') return { status, reason, message: '' };
  return { status, reason, message: engineText(message, MAX_LISTED_MESSAGE_CHARACTERS) };
}

/**
 * What decides whether an unhealthy package can be the cause of the failure that is reported. Of all packages whose content is as it was
 * the tree is the present one, so that they share a state. It stays through deliveries that could not be compared, such as those during
 * an outage of the engine.
 */
function historyOf(
  { healthy, isShared, isUnchanged }: EvaluatedPackage,
  before: string | undefined,
  tree: string | undefined,
): Pick<TimedDeployment, 'wasHealthy' | 'healthyTree' | 'isShared'> {
  const isHealthy = healthy.status === 'True';
  let healthyTree = before;
  if (isHealthy || isUnchanged === true) healthyTree = tree;
  else if (isUnchanged === false) healthyTree = undefined;
  return {
    ...(!isHealthy && isUnchanged === true ? { wasHealthy: true } : {}),
    ...(healthyTree === undefined ? {} : { healthyTree }),
    ...(!isHealthy && isShared === true ? { isShared } : {}),
  };
}

function textOf({ synced, healthy, wasHealthy, healthyTree, isShared }: TimedDeployment): string {
  const part = ({ status, reason, message }: TimedState) => [status, reason, message];
  return JSON.stringify([part(synced), part(healthy), wasHealthy === true, healthyTree, isShared === true]);
}

function timesOf({ synced, healthy }: TimedDeployment): string {
  return `${synced.since} ${healthy.since}`;
}

/** Those of a group that are listed for their times: the most recent ones, if the times differ at all. */
function recentOf(group: readonly ListedPackage[]): ReadonlySet<ListedPackage> {
  const times = Map.groupBy(group, timesOf);
  if (times.size <= 1) return new Set();
  // The largest part of equal times needs no list.
  const [largest = []] = [...times.values()].sort((a, b) => b.length - a.length);
  const rest = new Set(group);
  for (const one of largest) rest.delete(one);
  const byTime = [...rest].sort((a, b) => Date.parse(latestOf(b)) - Date.parse(latestOf(a)));
  return new Set(byTime.slice(0, MAX_RECENT_PACKAGES));
}

function latestOf({ synced, healthy }: TimedDeployment): string {
  return laterOf(synced.since, healthy.since);
}

function commonOf(
  shared: readonly ListedPackage[],
  before: TargetDeployment | undefined,
  now: string,
): TimedDeployment {
  const [first] = shared;
  if (first === undefined) {
    const none = state('Unknown', 'NotReported', 'no package is delivered');
    return { synced: timed(none, before?.common.synced, now), healthy: timed(none, before?.common.healthy, now) };
  }
  const latest = (of: (one: ListedPackage) => TimedState) => ({
    ...of(first),
    since: shared.map((one) => of(one).since).reduce(laterOf),
  });
  const { wasHealthy, healthyTree, isShared } = first;
  return {
    synced: latest(({ synced }) => synced),
    healthy: latest(({ healthy }) => healthy),
    ...(wasHealthy === undefined ? {} : { wasHealthy }),
    ...(healthyTree === undefined ? {} : { healthyTree }),
    ...(isShared === undefined ? {} : { isShared }),
  };
}

function unlistedOf(
  unlisted: readonly ListedPackage[],
  shared: readonly ListedPackage[],
): NonNullable<TargetDeployment['unlisted']> {
  const [healthyTree, ...others] = new Set([...unlisted, ...shared].map((one) => one.healthyTree));
  return {
    ...{ count: unlisted.length, since: unlisted.map(latestOf).reduce(laterOf) },
    ...(healthyTree === undefined || others.length > 0 ? {} : { healthyTree }),
  };
}

const BADNESS = { False: 0, Unknown: 1, True: 2 } as const;

/** Of equal ones those without the usual tree come first, so that what is not listed has one tree. */
function worstFirst(usualTree: string | undefined): (a: ListedPackage, b: ListedPackage) => number {
  const worst = ({ synced, healthy }: ListedPackage) => Math.min(BADNESS[synced.status], BADNESS[healthy.status]);
  const usual = ({ healthyTree }: ListedPackage) => Number(healthyTree === usualTree);
  return (a, b) => worst(a) - worst(b) || usual(a) - usual(b);
}

/** The state of a target as a whole: the worst one of its packages, with the number of each. */
function totalOf(packages: readonly ListedPackage[], of: (one: ListedPackage) => TimedState, word: string): Untimed {
  const worst = Math.min(...packages.map((one) => BADNESS[of(one).status]));
  const affected = packages.filter((one) => BADNESS[of(one).status] === worst);
  const [first] = affected;
  if (first === undefined) return state('Unknown', 'NotReported', 'no package is delivered');
  const { status, reason, message } = of(first);
  const good = packages.filter((one) => of(one).status === 'True').length;
  const count = `${good} of ${packages.length} ${packages.length === 1 ? 'package is' : 'packages are'} ${word}`;
  if (status === 'True') return { status, reason, message: count };
  const names = affected.slice(0, MAX_NAMED).map((one) => one.package);
  const more = affected.length > names.length ? ` and ${affected.length - names.length} more` : '';
  return { status, reason, message: engineText(`${count}; ${names.join(', ')}${more}: ${message}`) };
}

/** The number of packages in each status; statuses without packages are 0. The cost is that of the packages that the status lists. */
export function statusCounts(
  { status }: Pick<DeliveryTarget, 'status'>,
  condition: 'synced' | 'healthy',
): Readonly<Record<TimedState['status'], number>> {
  const counts = { True: 0, False: 0, Unknown: 0 };
  const total = deliveredCount(status);
  const deployment = currentDeployment({ status });
  if (deployment === undefined) return { ...counts, Unknown: total };
  const { packages: listed = [], unlisted, common } = deployment;
  for (const one of listed) counts[one[condition].status] += 1;
  counts.Unknown += unlisted?.count ?? 0;
  counts[common[condition].status] += Math.max(0, total - listed.length - (unlisted?.count ?? 0));
  return counts;
}
