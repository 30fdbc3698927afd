import { packageKey } from '../selection/select-revisions.ts';
import { asFailed, type Change, type TargetHistory } from './change.ts';

/** What the package repository knows of a revision. */
export interface RevisionFacts {
  /** RFC 3339. */
  readonly createdAt: string;
  /** The revision that this one reverts. */
  readonly reverts?: number | undefined;
}

/**
 * The history with the creation of drafts, and with the failure of revisions that a later one reverts. Facts that are not known yet, since
 * a repository is not open, are added later. Returns the same object if nothing changes.
 */
export function recordFacts(
  history: TargetHistory,
  factsOf: (change: Change) => RevisionFacts | undefined,
): TargetHistory {
  const changes = [...history.changes];
  let isChanged = false;
  for (const [index, change] of history.changes.entries()) {
    if (change.createdAt !== undefined) continue;
    const facts = factsOf(change);
    if (facts === undefined || Number.isNaN(Date.parse(facts.createdAt))) continue;
    isChanged = true;
    changes[index] = { ...(changes[index] ?? change), createdAt: facts.createdAt };
    const { reverts } = facts;
    if (reverts === undefined || reverts >= change.revision) continue;
    const reverted = changes.findIndex(
      (one) => one.revision === reverts && packageKey(one) === packageKey(change) && one.removedAt === undefined,
    );
    const failed = changes[reverted];
    if (failed !== undefined) changes[reverted] = asFailed(failed, 'Reverted', Date.parse(change.deliveredAt));
  }
  return isChanged ? { ...history, changes } : history;
}
