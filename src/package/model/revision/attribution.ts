import { timestamp } from '../../../foundation/time/clock.ts';
import type { Oid } from '../../../git/git-repository.ts';
import { PUSH_ACTOR } from '../gates/verdict.ts';
import { publishedRecordOf } from '../record/commit-message.ts';
import type { Contributor, LifecycleStep } from '../record/record.ts';
import { isPublished, type PackageRevision } from './package-revision.ts';

/*
 * The authors of changes, for display. Git lets any user who may push write any name into a commit: a name counts as that of an actor
 * only where a trusted signed statement has it. Any other one is a claim, and is shown as such.
 */

const CLAIM = 'says: ';

/** Formats a name that is in no trusted statement. */
export function claimed(name: string): string {
  return `${CLAIM}${name}`;
}

/** The name of a claim; undefined for an actor. */
export function claimedName(by: string): string | undefined {
  return by.startsWith(CLAIM) ? by.slice(CLAIM.length) : undefined;
}

/** Returns the author of the commit of a revision. The Git author of a plain push is a claim. */
export function authorOf(revision: PackageRevision): string {
  const { commit, record, tip } = revision;
  const approval = approvalOf(revision);
  if (approval !== undefined) return approval.by;
  if (record?.last?.made === commit) return record.last.by;
  const { actor } = tip.facts;
  if (actor === undefined) return claimed(tip.author);
  const isVouched = record?.commit === commit && areAllKnown(record.contributors);
  return isVouched || isAdopted(revision) ? actor : claimed(actor);
}

/**
 * Returns the publisher of a revision: the actor, or for a commit that is not Sluice's the e-mail address of its author, as
 * in Porch.
 */
export function publisherOf(revision: PackageRevision): string {
  const { authorEmail } = revision.tip;
  return authorEmail === undefined || approvalOf(revision) !== undefined ? authorOf(revision) : authorEmail;
}

/**
 * Returns the last request about a revision: the one that wrote its record if that applies to the current commit, else the
 * commit.
 */
export function lastRequestOf(revision: PackageRevision): {
  readonly by: string;
  /** RFC 3339. */
  readonly at: string;
  readonly action: string;
  readonly reason?: string;
} {
  const { commit, record, tip } = revision;
  if (isMarkedByPush(revision)) return { by: PUSH_ACTOR, at: timestamp(tip.time), action: 'push' };
  const last = record?.commit === commit ? record.last : undefined;
  const step = last ?? record?.steps.findLast(({ commit: of }) => of === commit) ?? approvalOf(revision);
  if (step !== undefined) {
    const { by, at, action, reason } = step;
    return { by, at, action, ...(reason === undefined ? {} : { reason }) };
  }
  const { action = 'push', reason } = tip.facts;
  const common = { by: authorOf(revision), at: timestamp(tip.time), action };
  return reason === undefined ? common : { ...common, reason };
}

/** Returns who changed the lifecycle of a revision: a request about the move, or a push. */
export function moveOf(
  before: PackageRevision,
  after: PackageRevision,
): { readonly by: string; readonly reason?: string } {
  return isMovedByPush(before, after) ? { by: PUSH_ACTOR } : lastRequestOf(after);
}

/** A push that moves a branch or a tag does not change the record, whose last request has another subject. */
function isMovedByPush(before: PackageRevision, after: PackageRevision): boolean {
  const { lifecycle, record } = after;
  // Of a publication that is proposed for deletion, or is not any more, `lastRequestOf` decides.
  if (isPublished(before) && isPublished(after)) return false;
  if (isPublished(before)) return true;
  if (isPublished(after)) return approvalOf(after) === undefined;
  const last = record?.steps.findLast(({ action }) => action === 'propose' || action === 'reject');
  return last?.action !== (lifecycle === 'Proposed' ? 'propose' : 'reject');
}

/** True if a push proposed a deletion or withdrew the proposal: the last request about it was another one. */
function isMarkedByPush({ lifecycle, record }: PackageRevision): boolean {
  if (lifecycle !== 'Published' && lifecycle !== 'DeletionProposed') return false;
  const last = record?.steps.findLast(({ action }) => DELETION_STEPS.has(action));
  return (lifecycle === 'DeletionProposed') !== (last?.action === 'propose-deletion');
}

const DELETION_STEPS: ReadonlySet<string> = new Set(['propose-deletion', 'undo-deletion', 'reject']);

/** The approval of a publication that counts, as its signed statement has it. */
export function approvalOf(revision: PackageRevision): LifecycleStep | undefined {
  if (!isPublished(revision) || revision.outOfBand !== undefined) return undefined;
  return publishedRecordOf(revision.tip.facts)?.steps.findLast(({ action }) => action === 'approve');
}

/** The trailers of a commit that an operator adopted count with it. */
function isAdopted(revision: PackageRevision): boolean {
  return isPublished(revision) && revision.revision > 0 && revision.outOfBand === undefined;
}

/** True if a signed list of contributors knows of no push, so that every commit is one of Sluice's and its trailers are right. */
export function areAllKnown(contributors: readonly Contributor[] | undefined): boolean {
  return contributors?.every(({ face }) => face !== 'git') === true;
}

/** Returns the signed list of contributors of a revision, and the last commit that it covers. */
export function writersOf(
  revision: PackageRevision,
): { readonly contributors: readonly Contributor[] | undefined; readonly upTo: Oid | undefined } | undefined {
  if (isPublished(revision)) {
    const signed = revision.outOfBand === undefined ? revision.tip.facts.statement?.statement : undefined;
    return signed && { contributors: signed.record.contributors, upTo: signed.draft };
  }
  const { record } = revision;
  return record && { contributors: record.contributors, upTo: record.commit };
}
