import { type DeliveredPackage, packagesDigest } from '../../src/delivery/delivered/delivered-package.ts';
import type { Rollback } from '../../src/delivery/delivery-target.ts';
import { compareText, joinPath, normalizeDirectory } from '../../src/delivery/path-rules.ts';
import { withoutRollbacks } from '../../src/delivery/rollback/rollback-status.ts';
import { isAlert, type PackageRefusal, packageKey } from '../../src/delivery/selection/select-revisions.ts';
import type { Desired } from '../../src/delivery/tree/desired-result.ts';
import type { FolderOwner } from '../../src/delivery/tree/kustomization.ts';
import { readMessage } from '../../src/delivery/tree/trailers.ts';
import { ellipsize } from '../../src/foundation/text/shorten.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import { type FreezeRule, freezeText } from '../../src/package/model/policy/approval-rules.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { type Condition, findCondition, setCondition } from '../../src/resource/object/condition.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import type { WantedContent } from './wanted-revisions.ts';

type TargetStatus = NonNullable<DeliveryTarget['status']>;

/** The state of a target. `packages` and `lastCommit` keep their values where they are absent. */
export interface DeliveryReport {
  readonly reason:
    | 'Delivered'
    | 'Partial'
    | 'RepositoryMissing'
    | 'PruneHeld'
    | 'Suspended'
    | 'Frozen'
    | 'TargetIsPackages'
    | 'BranchMissing'
    /** Not a state: a pull request was merged, and the branch has to be read. */
    | 'Merged'
    | 'WaitsForMerge'
    | 'PullRequestClosed'
    | 'BranchChanged'
    | 'Error';
  readonly message: string;
  readonly packages?: readonly DeliveredPackage[];
  /** Of `packages`. */
  readonly digest?: string;
  readonly lastCommit?: string | undefined;
  /** Rollbacks that are removed from the status. */
  readonly endedRollbacks?: readonly Rollback[];
  /** Packages that stay as they are because a revision does not count; undefined if that was not checked. */
  readonly blocked?: readonly string[];
  /** Folders that stay as another writer changed them, with the changes; undefined if that was not checked. */
  readonly drifted?: DriftReport;
  /** The pull request that delivers; undefined to keep the last one. */
  readonly pullRequest?: TargetStatus['pullRequest'];
}

export interface DriftReport {
  /** By `packageKey`. */
  readonly packages: ReadonlySet<string>;
  /** Descriptions of the first ones. */
  readonly texts: readonly string[];
}

/** Condition of a target, set once a package was blocked. */
const BLOCKED_CONDITION = 'Held';
/** Condition of a target, set once a Freeze stopped it. */
const FROZEN_CONDITION = 'Frozen';
/** Condition of a target, set once a folder kept the changes of another writer. */
const DRIFTED_CONDITION = 'Drifted';

export interface DeliveryOutcome {
  readonly result: Desired;
  readonly wanted: WantedContent;
  /** Folders that the target wrote earlier. */
  readonly folders: readonly FolderOwner[];
  /** Repositories with folders in the branch, whose packages are unknown at present. */
  readonly unreadable: ReadonlySet<string>;
  /** The packages of repositories that are away, whose folders stay. */
  readonly unknown: readonly DeliveredPackage[];
  /** Names of spec.selector.repositories without a Repository object. */
  readonly unregistered: readonly string[];
  /** The new commit; undefined if the branch had everything. */
  readonly commit: Oid | undefined;
  /** The commit of the branch before it. */
  readonly head: Oid | undefined;
  /** True if the repository no longer has `lastCommit` of the status. */
  readonly isLastCommitLost: boolean;
  readonly drifted: DriftReport;
  /** Packages that stay as they are, and whose folder another writer changed since the last delivery, by `packageKey`. */
  readonly edited: ReadonlySet<string>;
  /** What a pull request delivers, which is not on the branch yet. */
  readonly pull?: PendingPull | undefined;
}

export interface PendingPull extends Pick<DeliveryReport, 'pullRequest'> {
  /** Undefined if the branch has everything. */
  readonly wait?: { readonly reason: DeliveryReport['reason']; readonly message: string } | undefined;
  /** Folders that a merge changes or removes, as the branch has them. */
  readonly folders: readonly FolderOwner[];
  /** Those of them that another writer changed, by `packageKey`. */
  readonly drifted: ReadonlySet<string>;
}

/** Of a target with spec.suspend. */
export const SUSPENDED = 'nothing is changed while spec.suspend is set';
/** States that end only by a change of the target or of its repository. */
export const BLOCKING_REASONS: ReadonlySet<DeliveryReport['reason']> = new Set([
  'BranchMissing',
  'Error',
  'Frozen',
  'TargetIsPackages',
]);

const MAX_MESSAGE_CHARACTERS = 2000;

/** `before` are the packages that were delivered so far. */
export function reportOf(
  status: TargetStatus | undefined,
  before: readonly DeliveredPackage[],
  outcome: DeliveryOutcome,
): DeliveryReport {
  const { result, wanted, unreadable, unknown, unregistered, commit, head, isLastCommitLost, drifted, edited } =
    outcome;
  const { pull } = outcome;
  const onBranch = pull === undefined ? result.packages : result.packages.filter(({ changed }) => !changed);
  const delivered = onBranch.map(({ repository, package: path, revision }) => {
    const key = packageKey({ repository, package: path });
    const from = wanted.chosen.get(key);
    // The commit contains what the other writer made of it.
    const mark = drifted.packages.has(key) ? { drifted: true as const } : {};
    const source = { commit: from?.sourceCommit ?? '', tree: from?.sourceTree ?? '' };
    return { repository, package: path, revision, ...source, ...mark };
  });
  const away = unknown.map((one) => (edited.has(packageKey(one)) ? { ...one, drifted: true as const } : one));
  const earlier = pull === undefined ? [] : beforeMerge(before, pull);
  const packages = [...delivered, ...earlier, ...remainingPackages(before, outcome), ...away].sort((a, b) =>
    compareText(packageKey(a), packageKey(b)),
  );
  // After a crash between a commit and its report the branch has everything, at its head. The objects of packages may show it already. The
  // same holds if other commits have replaced the one of the status: the folders of the head were compared with what is desired.
  const digest = packagesDigest(packages);
  const isKnown = status?.lastCommit !== undefined && digest === status.packagesDigest && !isLastCommitLost;
  const common = {
    ...{ packages, digest, lastCommit: commit ?? (isKnown ? status.lastCommit : head) },
    endedRollbacks: wanted.endedRollbacks,
    blocked: result.refused.filter(isAlert).map(describe),
    // Folders with the mark that cannot be compared at present may be those that the condition is about.
    ...(drifted.packages.size === 0 && packages.some((one) => one.drifted) ? {} : { drifted }),
    ...(pull?.pullRequest === undefined ? {} : { pullRequest: pull.pullRequest }),
  };
  const waiting = pull?.wait === undefined ? '' : `; ${pull.wait.message}`;
  const missing = unregistered.length === 0 ? '' : `; ${unregisteredText(unregistered)}`;
  if (result.pruneBlocked.length > 0) {
    const message = `no package is selected any more; set spec.allowPrune: true to remove ${result.pruneBlocked.join(', ')}`;
    return { ...common, reason: 'PruneHeld', message: cut(`${message}${missing}${waiting}`) };
  }
  const count = delivered.length + earlier.length;
  const summary = `${count} ${count === 1 ? 'package is' : 'packages are'} delivered${waiting}`;
  const problems = result.refused.filter(({ reason }) => reason !== 'Unverified').map(describe);
  for (const name of unreadable) problems.push(`repository ${name} is not known or not ready, so its folders stay`);
  if (problems.length > 0)
    return { ...common, reason: 'Partial', message: cut(`${summary}${missing}; ${problems.join('; ')}`) };
  const unchecked = result.refused.length;
  const more =
    unchecked === 0 ? '' : `; ${unchecked} ${unchecked === 1 ? 'waits' : 'wait'} for the check of signatures`;
  // A name with a typing error may be the only one; beside others, what exists is delivered completely.
  const isMissing = missing !== '' && count === 0 && unchecked === 0;
  const reason = pull?.wait?.reason ?? (isMissing ? 'RepositoryMissing' : 'Delivered');
  return { ...common, reason, message: cut(`${summary}${more}${missing}`) };
}

/** The packages in folders that a merge changes, as they are on the branch until then. */
function beforeMerge(before: readonly DeliveredPackage[], { folders, drifted }: PendingPull): DeliveredPackage[] {
  const knownOf = new Map(before.map((one) => [packageKey(one), one]));
  return folders.flatMap(({ repository, package: path, revision }) => {
    const key = packageKey({ repository, package: path });
    const known = knownOf.get(key);
    if (revision === undefined) return known === undefined ? [] : [known];
    const of = known?.revision === revision ? known : { repository, package: path, revision, commit: '', tree: '' };
    return drifted.has(key) ? { ...of, drifted: true as const } : of;
  });
}

/** Repositories that the selector of a target names, and that no object of its namespace registers. */
export function unregisteredText(names: readonly string[]): string {
  const [first = ''] = names;
  if (names.length === 1) return `repository ${first} is not registered in this namespace`;
  return `repositories ${names.join(', ')} are not registered in this namespace`;
}

/**
 * Returns the packages whose earlier delivery is still in the branch, because the last publication does not count or no
 * publication is left.
 */
function remainingPackages(
  before: readonly DeliveredPackage[],
  { result, folders, edited }: DeliveryOutcome,
): readonly DeliveredPackage[] {
  const folderOf = new Map(folders.map((folder) => [packageKey(folder), folder]));
  const knownOf = new Map(before.map((one) => [packageKey(one), one]));
  return result.refused.flatMap((refusal) => {
    const key = packageKey(refusal);
    const { repository, package: path } = refusal;
    const known = knownOf.get(key);
    const present = folderOf.has(key) ? folderOf.get(key)?.revision : known?.revision;
    // A branch that went back, for example to a backup, does not make a later delivery forgotten that is missing in its repository.
    const isLost =
      refusal.reason === 'OutOfBandRemoval' && present !== undefined && refusal.revision === known?.revision;
    // A folder that a user removed also counts as delivered.
    const revision = isLost ? known?.revision : present;
    if (revision === undefined) return [];
    const of = known?.revision === revision ? known : { repository, package: path, revision, commit: '', tree: '' };
    // The mark stays until the package is delivered again: there are no manifests to compare the folder with before. The folder of a branch
    // that went back names its revision, also where the repository has lost the commit to compare with.
    const isOther = edited.has(key) || known?.drifted === true || present !== revision;
    return isOther ? { ...of, drifted: true as const } : of;
  });
}

function describe(refusal: PackageRefusal): string {
  return `${packageKey(refusal)}: ${refusal.reason}: ${refusal.message}`;
}

/** The start of another refusal, or of an unknown repository, in the message of Ready. */
const OTHER_PROBLEM = /^(?:\S+: [A-Z][A-Za-z]+: |repository )/;

/** The refusal of a package in the message of a target that is Partial, which is truncated and has the refusals of all packages in one text. */
export function refusalIn(message: string, key: Parameters<typeof packageKey>[0]): string | undefined {
  const parts = message.split('; ');
  const start = parts.findIndex((part) => part.startsWith(`${packageKey(key)}: `));
  if (start < 0) return undefined;
  // The advice of a refusal follows a semicolon too.
  const next = parts.findIndex((part, at) => at > start && OTHER_PROBLEM.test(part));
  const own = parts.slice(start, next < 0 ? undefined : next).join('; ');
  return own.slice(packageKey(key).length + 2);
}

/** Describes the effect of a commit for an event. */
export function describeDelivery(commit: Oid, { packages, message }: Desired): string {
  const parts = packages.filter(({ changed }) => changed).map(({ package: path, revision }) => `${path} v${revision}`);
  for (const { package: path } of readMessage(message).removed) parts.push(`${path} removed`);
  return `commit ${commit}: ${parts.join(', ')}`;
}

/** The folders that a commit changes, from the root of the repository of the target. */
export function changedFolders({ packages, message }: Desired, directory: string): string[] {
  const top = normalizeDirectory(directory);
  const removed = readMessage(message).removed.map(({ package: path }) => joinPath(top, path));
  return [...packages.filter(({ changed }) => changed).map(({ folder }) => folder), ...removed];
}

/** Returns the status after a report; undefined if nothing changed. `now` is in milliseconds since the epoch. */
export function targetStatusAfter(
  target: DeliveryTarget,
  report: DeliveryReport,
  now: number,
): TargetStatus | undefined {
  const { generation } = target.metadata;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const { reason, message, packages, digest, lastCommit, blocked, drifted } = report;
  const isReady = reason === 'Delivered' ? ('True' as const) : ('False' as const);
  const ready = { type: 'Ready', status: isReady, reason, message, ...observed };
  const withReady = setCondition(target.status?.conditions, ready, now);
  const withFrozen = withFrozenCondition(withReady, report, observed, now);
  const withBlocked = withBlockedCondition(withFrozen, blocked, observed, now);
  const conditions = withDriftedCondition(withBlocked, drifted, observed, now);
  // The list of earlier versions; it is removed once there are objects for it.
  const { packages: listed, ...present } = target.status ?? {};
  const reported = {
    ...present,
    ...observed,
    conditions: [...conditions],
    ...(packages === undefined
      ? listed && { packages: listed }
      : { packageCount: packages.length, packagesDigest: digest }),
    ...(lastCommit === undefined ? {} : { lastCommit }),
    ...(report.pullRequest === undefined ? {} : { pullRequest: report.pullRequest }),
  };
  const status = withoutRollbacks(reported, report.endedRollbacks ?? [], 'a later revision is published', now);
  return sameValue(status, target.status) ? undefined : status;
}

function withFrozenCondition(
  conditions: readonly Condition[],
  { reason, message }: DeliveryReport,
  observed: { readonly observedGeneration?: number },
  now: number,
): readonly Condition[] {
  const isFrozen = reason === 'Frozen';
  if (!isFrozen && findCondition(conditions, FROZEN_CONDITION) === undefined) return conditions;
  const next = isFrozen
    ? { status: 'True' as const, reason: 'Freeze', message }
    : { status: 'False' as const, reason: 'NoFreeze', message: 'no Freeze is in force' };
  return setCondition(conditions, { type: FROZEN_CONDITION, ...next, ...observed }, now);
}

/** The report of a target in whose namespace freezes are in force; the branch stays as it is. */
export function frozenReport(freezes: readonly FreezeRule[]): DeliveryReport {
  return { reason: 'Frozen', message: cut(`nothing is delivered: ${freezes.map(freezeText).join('; ')}`) };
}

/** An alert: because publications do not count, packages stay at their earlier delivery. */
function withBlockedCondition(
  conditions: readonly Condition[],
  blocked: readonly string[] | undefined,
  observed: { readonly observedGeneration?: number },
  now: number,
): readonly Condition[] {
  const isNews =
    blocked !== undefined && (blocked.length > 0 || findCondition(conditions, BLOCKED_CONDITION) !== undefined);
  if (!isNews) return conditions;
  const next =
    blocked.length > 0
      ? { status: 'True' as const, reason: 'TrustMissing', message: cut(blocked.join('; ')) }
      : { status: 'False' as const, reason: 'Trusted', message: 'every publication that the target selects counts' };
  return setCondition(conditions, { type: BLOCKED_CONDITION, ...next, ...observed }, now);
}

function withDriftedCondition(
  conditions: readonly Condition[],
  drifted: DriftReport | undefined,
  observed: { readonly observedGeneration?: number },
  now: number,
): readonly Condition[] {
  if (drifted === undefined) return conditions;
  const { packages, texts } = drifted;
  const folders = packages.size;
  if (folders === 0 && findCondition(conditions, DRIFTED_CONDITION) === undefined) return conditions;
  const advice = 'publish a new revision, revert the change, or set spec.drift: Repair';
  const summary = `another writer changed ${folders} ${folders === 1 ? 'folder, which stays' : 'folders, which stay'} so; ${advice}`;
  const next =
    folders > 0
      ? { status: 'True' as const, reason: 'ChangedByOthers', message: cut([summary, ...texts].join('\n')) }
      : { status: 'False' as const, reason: 'AsDelivered', message: 'every folder is as delivered' };
  return setCondition(conditions, { type: DRIFTED_CONDITION, ...next, ...observed }, now);
}

function cut(text: string): string {
  return ellipsize(text, MAX_MESSAGE_CHARACTERS);
}
