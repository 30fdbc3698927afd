import type { Annotation } from '../../../src/forge/forge.ts';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { REVIEWED_TYPE } from '../../../src/package/model/policy/review-policy.ts';
import type { ExecutedCommands } from '../../../src/package/model/record/executed-commands.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import type { PackageRevision } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, type ObjectKey, type Stored } from '../../../src/resource/object/object.ts';
import type { Proposal } from '../text/describe-proposal.ts';
import type { BranchMember } from './batch-branch.ts';
import type { BatchCandidate } from './plan-batches.ts';

/** A proposal that shares a pull request, as its last reconciliation read it. */
export interface BatchMember extends BatchCandidate, BranchMember {
  readonly key: ObjectKey;
  readonly object: Stored<PackageRevision>;
  readonly revision: Revision;
  readonly described: Proposal;
  readonly annotations: readonly Annotation[];
  /** The gate of its reviews has been judged: what is proposed has its condition. */
  readonly isReviewed: boolean;
  /** Commands that were executed for it. */
  readonly commands: ExecutedCommands | undefined;
  /** Numbers of merged pull requests that list it, and were merged without it. */
  readonly left: readonly number[];
}

/** What is known of a proposal, as its pull request needs it. */
export function memberOf(
  object: Stored<PackageRevision>,
  { revision, record, gates }: Pick<RevisionEvaluation, 'gates' | 'revision' | 'record'>,
  read: Pick<BatchMember, 'annotations' | 'described' | 'left' | 'proposal'>,
): Omit<BatchMember, 'seenMs'> {
  const { name, path, tip } = revision;
  const { policy, batch } = read.described.review;
  if (tip.tree === undefined) throw new SluiceError('Corrupt', `${name} has no package at ${path}; reject it`);
  return {
    ...{ ...read, key: keyOf(object), object, revision, name, path, tree: tip.tree, policy },
    maxPackages: batch?.maxPackages ?? 1,
    commands: record.commands,
    isReviewed: gates.every(({ type, state }) => type !== REVIEWED_TYPE || state === 'Open' || state === 'NotTrue'),
    at: record.steps.findLast(({ action }) => action === 'propose')?.at ?? '',
  };
}

/** What decides whether a pull request has to be written. */
export function shownOf(member: BatchMember | undefined) {
  if (member === undefined) return undefined;
  const { proposal, tree, described, annotations, policy, maxPackages, commands, left, isReviewed } = member;
  return { proposal, tree, described, annotations, policy, maxPackages, commands, left, isReviewed };
}
