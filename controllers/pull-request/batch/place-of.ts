import type { PullRequest } from '../../../src/forge/forge.ts';
import { isRejected } from '../../../src/package/kernel/revision-state.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import { isPublication } from '../ending/apply-end.ts';
import { isOfProposal } from '../ending/is-of-proposal.ts';
import type { PullRequests } from '../pull-requests.ts';
import type { Shown } from '../shown-proposals.ts';
import { proposalsIn } from '../text/section.ts';
import { membersAt } from './batch-branch.ts';
import { isBatchBranch } from './batch-name.ts';
import type { Batches } from './batches.ts';

const HEADS = 'refs/heads/';

/** Where a proposal is reviewed. */
export interface Place {
  readonly branch: string;
  /** As it was last read; undefined if there is none yet. */
  readonly pull: PullRequest | undefined;
  /** Other proposals are reviewed there too. */
  readonly isShared: boolean;
  /** Numbers of merged pull requests that list it, and were merged without it. */
  readonly left: readonly number[];
  /** Where `pull` was merged: an open one that a user has opened since from the same branch. */
  readonly next?: PullRequest;
}

/**
 * The pull request of a proposal: its own one while that is open, else one that lists it. One of its own that was merged comes before an open one of
 * the same branch, until the merge is published, or this process has reported why it cannot be: one that is late still can. Without any,
 * the policy decides; a proposal that conflicts with the main branch gets its own one, so that the others can be merged.
 */
export async function placeOf(
  { store, batches, signal }: PlaceContext,
  { proposal, evaluation, review, known, pulls }: PlacedProposal,
): Promise<Place> {
  const { revision, conflict } = evaluation;
  const branch = revision.ref.startsWith(HEADS) ? revision.ref.slice(HEADS.length) : revision.ref;
  const ownOf = (pull: PullRequest | undefined) => ({ branch, pull, isShared: false, left: [] });
  const isPlaceOf = (pull: PullRequest | undefined) =>
    pull !== undefined && (pull.state === 'open' || isOfProposal(pull, { proposal, evaluation, known }));
  const kept = await pulls.ofBranch(branch, signal);
  const merged = pulls.mergedOf(branch);
  if (kept?.state === 'open' && merged !== undefined && isOfProposal(merged, { proposal, evaluation, known })) {
    // It has the marker since the merge was reported, unless it was shown there before.
    const hasMarker = proposalsIn(kept.body).includes(proposal) && known?.pull.number !== merged.number;
    const isReported = hasMarker && kept.number > merged.number && !isPublication({ review, pull: merged, evaluation });
    if (!isReported) return { ...ownOf(merged), next: kept };
    pulls.passOver(branch);
  }
  if (isPlaceOf(kept)) return ownOf(kept);
  const repository = store.repositoryOf(revision);
  const left: number[] = [];
  const mayShare = review.batch !== undefined && conflict === undefined;
  const isPlaced = known?.proposal === proposal && isBatchBranch(known.pull.branch);
  let shared =
    (await batches.pullOf(pulls, repository, proposal, signal)) ??
    (isPlaced ? await pulls.ofBranch(known.pull.branch, signal) : undefined);
  let own = ownOf(kept);
  if (shared === undefined) {
    // One that is opened in the place of one that has ended would undo what was decided there.
    const last = await pulls.lastOfBranch(branch, beganMs(evaluation.record), signal);
    own = ownOf(last);
    if (isPlaceOf(last)) return own;
  }
  if (shared?.state === 'open' && !mayShare) {
    // Its merge is fetched before it is read, and looks like a conflict then.
    shared = await pulls.forge.get(shared.number, signal);
    pulls.note(shared);
  }
  if (shared?.state === 'closed') return { ...own, branch: shared.head.branch, pull: shared, isShared: true };
  if (shared?.state === 'merged') {
    const members = await membersAt(repository.git, shared.head.commit);
    // By its name: of one that was proposed again while the branch had it, that has the proposal of before.
    const isPart = members?.some(({ name }) => name === revision.name) ?? true;
    if (isPart) return { ...own, branch: shared.head.branch, pull: shared, isShared: true };
    left.push(shared.number);
  }
  if (!mayShare) return own;
  const open = shared?.state === 'open' ? shared : undefined;
  return { branch: open?.head.branch ?? '', pull: open, isShared: true, left };
}

/** When it was proposed, for `PullRequests.lastOfBranch`: of a branch that was restored, nothing may be known any more. */
function beganMs(record: RevisionEvaluation['record']): number {
  if (isRejected(record)) return Number.NEGATIVE_INFINITY;
  return Date.parse(record.steps.findLast(({ action }) => action === 'propose')?.at ?? '') || 0;
}

export interface PlaceContext {
  readonly store: Pick<RevisionStore, 'repositoryOf'>;
  readonly batches: Pick<Batches, 'pullOf'>;
  readonly signal: AbortSignal;
}

export interface PlacedProposal {
  readonly proposal: string;
  readonly evaluation: RevisionEvaluation;
  readonly review: ReviewPolicy;
  readonly known: Shown | undefined;
  readonly pulls: PullRequests;
}
