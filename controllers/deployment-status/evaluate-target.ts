import type { DeliveredPackage } from '../../src/delivery/delivered/delivered-package.ts';
import { joinPath, normalizeDirectory } from '../../src/delivery/path-rules.ts';
import { packageKey } from '../../src/delivery/selection/select-revisions.ts';
import {
  type ConfirmedHealth,
  type DeploymentContext,
  deploymentState,
} from '../../src/delivery/status/deployment-state.ts';
import { type DeploymentState, type EngineReport, state } from '../../src/delivery/status/engine-report.ts';
import {
  type EvaluatedPackage,
  healthyContent,
  type TargetDeployment,
} from '../../src/delivery/status/target-deployment.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';

/** Reports by the folder that they deploy. */
export class ReportsByPath {
  readonly #byPath: ReadonlyMap<string, readonly EngineReport[]>;

  constructor(reports: readonly EngineReport[]) {
    this.#byPath = Map.groupBy(reports, ({ path }) => path);
  }

  /**
   * The reports of the innermost folder that contains this one, apart from objects that deploy no folder below their path, unless there are
   * only such. The cost is the depth of the folder.
   */
  covering(folder: string): readonly EngineReport[] {
    let others: readonly EngineReport[] = [];
    for (let path = folder; ; path = path.slice(0, Math.max(path.lastIndexOf('/'), 0))) {
      const reports = this.#byPath.get(path) ?? [];
      const including = path === folder ? reports : reports.filter(({ subfolders }) => subfolders !== 'None');
      if (including.length > 0) return including;
      if (others.length === 0) others = reports;
      if (path === '') return others;
    }
  }
}

/** A package with its folder and the reports about it. */
export interface ReportedPackage {
  readonly delivered: DeliveredPackage;
  readonly folder: string;
  readonly reports: readonly EngineReport[];
}

export function reportedPackages(
  { spec }: DeliveryTarget,
  packages: readonly DeliveredPackage[],
  reports: readonly EngineReport[],
): ReportedPackage[] {
  const directory = normalizeDirectory(spec.git.directory);
  const byPath = new ReportsByPath(reports);
  return packages.map((delivered) => {
    const folder = joinPath(directory, delivered.package);
    return { delivered, folder, reports: byPath.covering(folder) };
  });
}

/**
 * The folders to compare, by commit, or by tree of the target's directory: those of the delivery, those that were healthy by the report
 * before, and those that engines report.
 */
export function wantedTrees(
  packages: readonly ReportedPackage[],
  lastCommit: Oid,
  before: TargetDeployment | undefined,
): Map<Oid, Set<string>> {
  const wanted = new Map<Oid, Set<string>>();
  const add = (commit: Oid | undefined, folder: string) => {
    if (commit === undefined) return;
    const folders = wanted.get(commit) ?? new Set();
    wanted.set(commit, folders.add(folder));
  };
  for (const { delivered, folder, reports } of packages) {
    add(lastCommit, folder);
    add(before && healthyContent(before, delivered), folder);
    for (const { applied, attempt, since = [] } of reports)
      for (const commit of [applied, attempt?.commit, ...since]) add(commit, folder);
  }
  return wanted;
}

export type FolderLookups = Required<Pick<DeploymentContext, 'treeAt' | 'includes' | 'leftOut'>>;

/** Looks up each folder that the evaluation needs, so that `includes` and `leftOut` show what has to be read for it. */
export function lookUpFolders(
  packages: readonly ReportedPackage[],
  { treeAt, includes, leftOut }: FolderLookups,
): void {
  for (const { folder, reports } of packages)
    for (const report of reports) {
      const { path, subfolders, artifact, applied, attempt, since = [] } = report;
      const isListed = path !== folder && subfolders !== undefined;
      if ((!isListed && artifact === undefined) || (path !== folder && subfolders === 'None')) continue;
      for (const commit of new Set([applied, attempt?.commit, ...since])) {
        if (commit === undefined) continue;
        const tree = treeAt(commit, folder);
        if (tree === 'unknown' || tree === 'absent') continue;
        if (isListed) includes(report, commit, folder);
        leftOut(report, commit, folder);
      }
    }
}

/** The conditions of the target have the next step. */
const DRIFTED = 'another writer changed its folder in the branch, which stays so';

/** The state of each package; `confirmed` is kept for the next evaluation. */
export function evaluatePackages(
  packages: readonly ReportedPackage[],
  options: FolderLookups & {
    readonly lastCommit: Oid;
    /** The report before. */
    readonly before: TargetDeployment | undefined;
    readonly now: number;
    readonly confirmed: Map<string, ConfirmedHealth>;
  },
): EvaluatedPackage[] {
  const { lastCommit, before, treeAt, confirmed } = options;
  const shared = sharedReports(packages);
  const there = new Set(packages.map(({ delivered }) => packageKey(delivered)));
  for (const key of confirmed.keys()) if (!there.has(key)) confirmed.delete(key);
  return packages.map(({ delivered, folder, reports }) => {
    const { repository, package: path } = delivered;
    // What is above the folder deploys manifests of other writers and other targets too.
    const isShared = reports.some((report) => shared.has(report) || report.path !== folder);
    if (delivered.drifted === true) {
      // The folder in the branch is not what Sluice delivered, whatever the engine reports of it.
      confirmed.delete(packageKey(delivered));
      const [synced, healthy] = [state('False', 'Drifted', DRIFTED), state('Unknown', 'Drifted', DRIFTED)];
      return { repository, package: path, synced, healthy, isShared };
    }
    const tree = treeAt(lastCommit, folder);
    if (tree === 'unknown' || tree === 'absent') {
      const why =
        tree === 'unknown'
          ? state(
              'Unknown',
              'UnknownCommit',
              `the target's repository no longer has the delivered commit ${lastCommit.slice(0, 12)}`,
            )
          : state('Unknown', 'Missing', `the delivered commit has no folder ${folder}`);
      confirmed.delete(packageKey(delivered));
      return { repository, package: path, synced: why, healthy: why };
    }
    const key = packageKey(delivered);
    const result = deploymentState({ folder, tree }, reports, { ...options, confirmed: confirmed.get(key) });
    if (result.confirmed === undefined) confirmed.delete(key);
    else confirmed.set(key, result.confirmed);
    const healthyIn = before && healthyContent(before, delivered);
    const healthyTree = healthyIn === undefined ? 'absent' : treeAt(healthyIn, folder);
    return {
      ...{ repository, package: path, synced: result.synced, healthy: result.healthy },
      isShared,
      isUnchanged: healthyTree === 'unknown' ? undefined : healthyTree === tree,
    };
  });
}

/** The reports that are about several packages. */
function sharedReports(packages: readonly ReportedPackage[]): ReadonlySet<EngineReport> {
  const known = new Set<EngineReport>();
  const shared = new Set<EngineReport>();
  for (const { reports } of packages)
    for (const report of reports) {
      if (known.has(report)) shared.add(report);
      known.add(report);
    }
  return shared;
}

/** All packages in one state, where there are no reports. Their contents are not compared. */
export function allPackages(packages: readonly DeliveredPackage[], all: DeploymentState): EvaluatedPackage[] {
  return packages.map(({ repository, package: path }) => ({ repository, package: path, synced: all, healthy: all }));
}
