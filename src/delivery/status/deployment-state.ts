import type { Oid } from '../../git/git-repository.ts';
import { type DeploymentState, type EngineReport, state } from './engine-report.ts';
import { isWithin, shortOf } from './engine-values.ts';

/** Milliseconds for which the last health of a package holds while the engine works on something else. */
const HEALTH_HOLDS_MS = 300_000;

/** The id of the tree of a folder at a commit; `absent` if the commit has no such folder, `unknown` if the commit is not known. */
export type TreeAt = (commit: Oid, folder: string) => Oid | 'absent' | 'unknown';

/** The content of a package that Sluice delivered. */
export interface DeliveredFolder {
  /** From the root of the repository. */
  readonly folder: string;
  /** The tree of the folder in the commit of the delivery. */
  readonly tree: Oid;
}

/** The last health that the engine reported of a content itself. */
export interface ConfirmedHealth {
  readonly tree: Oid;
  readonly healthy: DeploymentState;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

export interface PackageDeployment {
  readonly synced: DeploymentState;
  readonly healthy: DeploymentState;
  /** For the next evaluation of the package. */
  readonly confirmed: ConfirmedHealth | undefined;
}

export interface DeploymentContext {
  readonly treeAt: TreeAt;
  /** Whether the object of a report, whose `subfolders` is Listed or Found, deploys a folder below its path at a commit. Default: it does. */
  readonly includes?: (report: EngineReport, commit: Oid, folder: string) => boolean;
  /** Why what an engine reads of a commit may lack a folder, with the next step; undefined if it does not. Default: it never does. */
  readonly leftOut?: (report: EngineReport, commit: Oid, folder: string) => string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly confirmed?: ConfirmedHealth | undefined;
}

/** The reports that concern a folder: those of the innermost folders that contain it. */
export function coveringReports(folder: string, reports: readonly EngineReport[]): EngineReport[] {
  const covering = reports.filter(({ path }) => isWithin(folder, path));
  const innermost = Math.max(...covering.map(({ path }) => path.length));
  return covering.filter(({ path }) => path.length === innermost);
}

/** Without the name of the folder: with it, each package of a target that no engine syncs yet would have a state of its own in the status. */
const UNDEPLOYED = state(
  'Unknown',
  'NotReported',
  'no object of the engine deploys the folder; "sluice target init" prints one that does',
);

/** An object reports success also without any manifest of the folder. */
const NOT_INCLUDED = state(
  'Unknown',
  'NotReported',
  'its path is above the folder, and what it deploys does not include the folder; apply what "sluice target init" prints again',
);

/**
 * Whether the content of a package is deployed and healthy, by the reports that concern it. Content is compared by tree: a report about
 * any commit counts whose folder has the delivered tree, and no other one, however new. An earlier application counts only if the engine
 * has applied no other content of the folder since, so that a return to an earlier content is not deployed before the engine has read it.
 * Healthy is True only if the engine reported the delivered tree as applied.
 */
export function deploymentState(
  delivered: DeliveredFolder,
  reports: readonly EngineReport[],
  context: DeploymentContext,
): PackageDeployment {
  const [first, ...others] = reports;
  if (first === undefined) return { synced: UNDEPLOYED, healthy: UNDEPLOYED, confirmed: undefined };
  let result = stateByReport(delivered, first, context);
  for (const report of others) {
    const other = stateByReport(delivered, report, context);
    result = {
      synced: worse(result.synced, other.synced),
      healthy: worse(result.healthy, other.healthy),
      confirmed: result.confirmed &&
        other.confirmed && { ...other.confirmed, healthy: worse(result.healthy, other.healthy) },
    };
  }
  return result;
}

function stateByReport(
  { folder, tree }: DeliveredFolder,
  report: EngineReport,
  { treeAt, includes = () => true, leftOut = () => undefined, now, confirmed }: DeploymentContext,
): PackageDeployment {
  const { object, applied, attempt, since = [], problem } = report;
  const named = ({ status, reason, message }: DeploymentState) =>
    state(status, reason, message === '' ? object : `${object}: ${message}`);
  if (problem !== undefined)
    return { synced: named(problem.synced), healthy: named(problem.healthy), confirmed: undefined };
  const isBelow = report.path !== folder;
  if (isBelow && report.subfolders === 'None')
    return { synced: named(NOT_INCLUDED), healthy: named(NOT_INCLUDED), confirmed: undefined };
  const treeOf = (commit: Oid | undefined) => {
    const found = commit === undefined ? undefined : treeAt(commit, folder);
    if (commit === undefined || found === 'unknown' || found === 'absent') return found;
    if (leftOut(report, commit, folder) !== undefined) return 'excluded';
    return !isBelow || report.subfolders === undefined || includes(report, commit, folder) ? found : 'excluded';
  };
  const [appliedTree, attemptTree] = [treeOf(applied), treeOf(attempt?.commit)];
  const isAttempted = attempt !== undefined && attemptTree === tree;
  const notDeployed = (synced: DeploymentState, healthy: DeploymentState): PackageDeployment => ({
    ...{ synced: named(synced), healthy: named(healthy), confirmed: undefined },
  });

  // A comparison of the cluster beats an earlier application.
  if (isAttempted && attempt.outcome === 'OutOfSync')
    return notDeployed(
      state('False', 'OutOfSync', attempt.message),
      stale('the cluster differs from what was delivered'),
    );
  // Later applications of other content contradict an earlier one, whether they succeeded or not; a comparison changes nothing.
  const later = attempt === undefined || attempt.outcome === 'OutOfSync' ? since : [...since, attempt.commit];
  const isEarlier = appliedTree === tree && later.every((one) => one === applied || treeOf(one) === tree);
  if (isEarlier || (isAttempted && attempt.outcome === 'Applied')) {
    const commit = isEarlier ? (applied as Oid) : (attempt?.commit as Oid);
    const synced = named(state('True', 'Synced', `applied it with commit ${shortOf(commit)}`));
    const isHeld =
      report.isWorking &&
      confirmed !== undefined &&
      confirmed.tree === tree &&
      now >= confirmed.at &&
      now - confirmed.at < HEALTH_HOLDS_MS;
    if (isHeld) return { synced, healthy: confirmed.healthy, confirmed };
    const healthy = named(report.healthy);
    return { synced, healthy, confirmed: report.isWorking ? undefined : { tree, healthy, at: now } };
  }
  if (isAttempted) {
    const { outcome, message } = attempt;
    if (outcome === 'Failed') {
      const healthy =
        report.healthy.status === 'False' ? report.healthy : stale('the delivered content is not applied');
      return notDeployed(state('False', 'Failed', message), healthy);
    }
    return notDeployed(state('Unknown', 'Syncing', message), stale('the delivered content is not applied yet'));
  }
  const unknown = appliedTree === 'unknown' ? applied : attemptTree === 'unknown' ? attempt?.commit : undefined;
  if (unknown !== undefined) {
    const why = `it reports commit ${shortOf(unknown)}, which the branch of the target does not have`;
    return notDeployed(state('Unknown', 'UnknownCommit', why), state('Unknown', 'UnknownCommit', why));
  }
  if (appliedTree === tree && attempt !== undefined && attempt.outcome !== 'Applied') {
    const isFailed = attempt.outcome === 'Failed';
    const why = `it ${isFailed ? 'tried' : 'applies'} commit ${shortOf(attempt.commit)} with other content after what was delivered`;
    return notDeployed(state('Unknown', isFailed ? 'Stale' : 'Syncing', why), stale(why));
  }
  const last = (appliedTree === tree ? attempt?.commit : undefined) ?? applied ?? attempt?.commit;
  if (last === undefined) {
    const why = state('Unknown', 'NotReported', 'it has applied no commit yet');
    return notDeployed(why, why);
  }
  if (appliedTree === 'excluded' || attemptTree === 'excluded') {
    const reasons = [applied, attempt?.commit].map((commit) => commit && leftOut(report, commit, folder));
    const why = reasons.find((one) => one !== undefined);
    const excluded = why === undefined ? NOT_INCLUDED : state('Unknown', 'NotReported', why);
    return notDeployed(excluded, excluded);
  }
  const why = `its last commit ${shortOf(last)} has other content than what was delivered`;
  return notDeployed(state('False', 'OutOfSync', why), stale(why));
}

function stale(message: string): DeploymentState {
  return state('Unknown', 'Stale', message);
}

const RANK = { False: 0, Unknown: 1, True: 2 } as const;

/** The worse one of two states; the first of equal ones. */
export function worse(one: DeploymentState, other: DeploymentState): DeploymentState {
  return RANK[other.status] < RANK[one.status] ? other : one;
}
