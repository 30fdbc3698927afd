import type { Check, PullRequest } from '../../../src/forge/forge.ts';
import type { ForgeMerging, Mergeability } from '../../../src/forge/forge-merging.ts';
import { REVIEW_ACTOR, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import { revisionId } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionEvaluation, RevisionStore } from '../../../src/package/store/revision-store.ts';
import { READY_CHECK } from '../checks/checks.ts';
import type { ShownPull } from '../shown-proposals.ts';

/** What decides whether the proposed branch is rebuilt on the main branch. */
export interface RebuildFacts {
  /** A merge of the pull request publishes the proposal, and Sluice has no reason against it. */
  readonly isReady: boolean;
  /** Merge queues test the present head. */
  readonly isQueued: boolean;
  readonly isOpen: boolean;
  /** The proposed branch was last based on the head of the main branch. */
  readonly isUpToDate: boolean;
  /** Undefined where it was not read. */
  readonly mergeability?: Mergeability;
}

/** `ask` reads the mergeability: it is of no interest otherwise. */
export function decideRebuild({ mergeability, ...facts }: RebuildFacts): 'ask' | 'rebuild' | 'leave' {
  if (!facts.isReady || facts.isQueued || !facts.isOpen || facts.isUpToDate) return 'leave';
  if (mergeability === undefined) return 'ask';
  return mergeability === 'conflict' || mergeability === 'behind' ? 'rebuild' : 'leave';
}

/**
 * Merges the main branch into the proposed one, with the package as it was proposed, if the host requires that for a merge. Reviews and approvals
 * stay: they are bound to the package. Reads what the host states once for each head of both branches. Returns true if it did.
 */
export async function rebuildBranch(
  { store, signal }: { readonly store: Pick<RevisionStore, 'change' | 'repositoryOf'>; readonly signal: AbortSignal },
  { revision, record, conflict }: RevisionEvaluation,
  { publishOn }: ReviewPolicy,
  { pull, checks, entry }: { readonly pull: PullRequest; readonly checks: readonly Check[]; readonly entry: ShownPull },
  forge: Pick<ForgeMerging, 'mergeability'>,
): Promise<boolean> {
  const head = store.repositoryOf(revision).index.mainHead;
  const ready = checks.find(({ name }) => name === READY_CHECK);
  const facts = {
    isReady: publishOn === 'merge' && conflict === undefined && ready?.state === 'success',
    isQueued: (entry.queued ?? []).length > 0,
    isOpen: pull.state === 'open',
    isUpToDate: head === undefined || record.base?.commit === head,
  };
  const heads = `${revision.commit} ${head}`;
  if (decideRebuild(facts) !== 'ask' || entry.mergeableAt === heads) return false;
  const mergeability = await forge.mergeability(pull.number, signal);
  // The host has not found out yet: the next event of the pull request asks again.
  if (mergeability !== 'unknown') entry.mergeableAt = heads;
  if (decideRebuild({ ...facts, mergeability }) !== 'rebuild') return false;
  const context = { actor: { name: REVIEW_ACTOR }, face: 'controller' } as const;
  await store.change(revisionId(revision), { rebase: 'keep', expectedCommit: revision.commit }, context);
  return true;
}
