import type { Desired } from '../../src/delivery/desired.ts';
import { type PackageRefusal, packageKey } from '../../src/delivery/select-revisions.ts';
import { readMessage } from '../../src/delivery/trailers.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import { setCondition } from '../../src/resource/condition.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/delivery-target.ts';
import { sameValue } from '../../src/resource/same-value.ts';
import type { Wanted } from './wanted-revisions.ts';

type TargetStatus = NonNullable<DeliveryTarget['status']>;

/** How a target is. `packages` and `lastCommit` stay as they were where they are not given. */
export interface DeliveryReport {
  readonly reason: 'Delivered' | 'Partial' | 'PruneHeld' | 'Suspended' | 'TargetIsPackages' | 'BranchMissing' | 'Error';
  readonly message: string;
  readonly packages?: TargetStatus['packages'];
  readonly lastCommit?: string | undefined;
}

export interface DeliveryOutcome {
  readonly result: Desired;
  readonly wanted: Wanted;
  readonly refused: readonly PackageRefusal[];
  /** Repositories with folders in the branch, of which nothing is known at present. */
  readonly unreadable: ReadonlySet<string>;
  /** The new commit; undefined if the branch held everything. */
  readonly commit: Oid | undefined;
  /** Where the branch was before. */
  readonly head: Oid | undefined;
}

const LONGEST_MESSAGE = 2000;

export function reportOf(before: TargetStatus | undefined, outcome: DeliveryOutcome): DeliveryReport {
  const { result, wanted, refused, unreadable, commit, head } = outcome;
  const packages = result.packages.map(({ repository, package: path, revision }) => {
    const row = wanted.rows.get(packageKey({ repository, package: path }));
    return { repository, package: path, revision, commit: row?.commit ?? '', tree: row?.tip.tree ?? '' };
  });
  // After a crash between a commit and its report the branch holds everything, at its head.
  const isKnown = before?.lastCommit !== undefined && sameValue(packages, before.packages);
  const common = { packages, lastCommit: commit ?? (isKnown ? before.lastCommit : head) };
  if (result.pruneHeld.length > 0) {
    const message = `no package is selected any more; set spec.allowPrune: true to remove ${result.pruneHeld.join(', ')}`;
    return { ...common, reason: 'PruneHeld', message: cut(message) };
  }
  const summary = `${packages.length} ${packages.length === 1 ? 'package is' : 'packages are'} delivered`;
  const problems = refused.map((refusal) => `${packageKey(refusal)}: ${refusal.reason}: ${refusal.message}`);
  for (const name of unreadable) problems.push(`repository ${name} is not known or not ready, so its folders stay`);
  if (problems.length === 0) return { ...common, reason: 'Delivered', message: summary };
  return { ...common, reason: 'Partial', message: cut(`${summary}; ${problems.join('; ')}`) };
}

/** What a commit did, for an event. */
export function describeDelivery(commit: Oid, { packages, message }: Desired): string {
  const parts = packages.filter(({ changed }) => changed).map(({ package: path, revision }) => `${path} v${revision}`);
  for (const { package: path } of readMessage(message).removed) parts.push(`${path} removed`);
  return `commit ${commit}: ${parts.join(', ')}`;
}

/** The status after a report; undefined if nothing is new. `now` is in milliseconds since the epoch. */
export function statusAfter(target: DeliveryTarget, report: DeliveryReport, now: number): TargetStatus | undefined {
  const { generation } = target.metadata;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const { reason, message, packages, lastCommit } = report;
  const isReady = reason === 'Delivered' ? ('True' as const) : ('False' as const);
  const ready = { type: 'Ready', status: isReady, reason, message, ...observed };
  const status = {
    ...target.status,
    ...observed,
    conditions: [...setCondition(target.status?.conditions, ready, now)],
    ...(packages === undefined ? {} : { packages }),
    ...(lastCommit === undefined ? {} : { lastCommit }),
  };
  return sameValue(status, target.status) ? undefined : status;
}

function cut(text: string): string {
  return text.length <= LONGEST_MESSAGE ? text : `${text.slice(0, LONGEST_MESSAGE - 1)}…`;
}
