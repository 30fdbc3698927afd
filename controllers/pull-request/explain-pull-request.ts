import {
  type ExplainedRevision,
  type Explainer,
  type Findings,
  type Surroundings,
  sluiceCommand,
} from '../../src/package/api/explain/explainer.ts';
import { lostRecord } from '../../src/package/kernel/blocking-rules.ts';
import { foreignMessage } from '../../src/package/kernel/foreign-files.ts';
import type { ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import { type RevisionEvaluation, refusalOf } from '../../src/package/store/evaluate-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { recordedApprovals } from '../../src/package/store/unmet-rules.ts';
import { waitsForMerge } from '../approval/explain-approval.ts';
import { batchBranchOf } from './batch/batch-branch.ts';
import { foreignFilesOf } from './checks/host-merge-rules.ts';
import { permitCommand, withoutRightText } from './reviews/mapped-rights.ts';
import type { ShownProposals } from './shown-proposals.ts';
import { proposalId } from './text/section.ts';

/** Users that a message names. */
const MAX_NAMED = 5;

/** Reports where a proposed revision is reviewed, and what a review there does. `shown` has what the controller of this process has found. */
export function pullRequestExplainer(
  store: Pick<RevisionStore, 'repositoryOf'>,
  shown?: Pick<ShownProposals, 'get'>,
): Explainer {
  return { explain: (explained, surroundings) => explainPull(store, shown, explained, surroundings) };
}

async function explainPull(
  store: Pick<RevisionStore, 'repositoryOf'>,
  shown: Pick<ShownProposals, 'get'> | undefined,
  { evaluation }: ExplainedRevision,
  { disabled }: Surroundings,
): Promise<Findings> {
  const { revision, record, policy } = evaluation;
  const { review, reviewProblem } = policy;
  if (revision.lifecycle !== 'Proposed') return {};
  if (reviewProblem !== undefined) return { reasons: [{ reason: 'NoPullRequest', message: reviewProblem }] };
  if (review === undefined) return {};
  const own = revision.ref.replace(/^refs\/heads\//, '');
  const proposal = proposalId(revision.uid, record.steps);
  const known = shown?.get(revision);
  const shared = await batchBranchOf(store.repositoryOf(revision), proposal);
  const branch = shared ?? own;
  const stopped = disabled.includes('pull-request')
    ? ', but the controller pull-request is disabled, so that nothing there has an effect'
    : `; ${lostRecord(revision.name, record) === undefined ? effectOf(review, evaluation) : 'nothing there publishes it, since its record was lost'}`;
  const where =
    known?.proposal === proposal
      ? `pull request #${known.pull.number} (${known.pull.url}) of the branch ${known.pull.branch}`
      : shared === undefined && review.batch !== undefined
        ? `a pull request that it shares with other proposals, which is opened soon, or that of the branch ${branch},`
        : `the pull request of the branch ${branch}`;
  const message = `policy ${review.policy} has it reviewed in ${where} on ${new URL(review.forge.api).host}${stopped}`;
  const reviewed = { reason: 'ReviewedInPullRequest', message };
  // What keeps Sluice from having it merged has a next step of its own.
  const { refusals } = store.repositoryOf(revision);
  const notes = refusals.of(revision.name);
  const isToBeMerged =
    waitsForMerge(evaluation) !== undefined &&
    refusalOf(evaluation) === undefined &&
    !disabled.includes('pull-request') &&
    !refusals.hasEnded(revision) &&
    !notes.some(({ reason, next }) => reason === 'NotMerged' && next !== undefined);
  const pull = known?.proposal === proposal ? known.pull.url : `that of the branch ${branch}`;
  const merge = isToBeMerged ? [`merge its pull request, unless Sluice has the host merge it: ${pull}`] : [];
  // Of a shared one, Sluice takes the package alone to its branch.
  const rights = known?.proposal === proposal && waitsForMerge(evaluation) === undefined ? known.rights : undefined;
  const lacking = rights && withoutRightText(review, rights);
  const permits = rights === undefined || lacking === undefined || refusalOf(evaluation) !== undefined;
  const permit = permits ? [] : [permitCommand(review.policy, revision.namespace, rights.without)];
  const reasons = [reviewed, ...(lacking === undefined ? [] : [{ reason: 'ApproversNotPermitted', message: lacking }])];
  const foreign = shared === undefined ? await foreignFilesOf(store.repositoryOf(revision), evaluation) : undefined;
  const next = [...merge, ...permit];
  if (foreign === undefined) return next.length === 0 ? { reasons } : { reasons, next };
  const { name } = revision;
  return {
    reasons: [...reasons, { reason: 'ForeignFiles', message: foreignMessage({ name, foreign }) }],
    next: [sluiceCommand('rpkg', 'rebase', name, '--keep')],
  };
}

function effectOf({ publishOn, approvers }: ReviewPolicy, evaluation: RevisionEvaluation): string {
  if (publishOn === 'merge') return 'its merge there publishes it if its gates are open, and is out of band otherwise';
  if (publishOn === 'approval') return 'requested changes there block its approval';
  if (approvers.length === 0) return 'no review publishes it, since spec.review.approvers is empty';
  const barred = new Set(recordedApprovals(evaluation).barred.map(({ name }) => name));
  const users = approvers.filter(({ subject }) => !barred.has(subject)).map(({ user }) => user);
  if (users.length === 0)
    return 'no review publishes it, since all users of spec.review.approvers have proposed or changed it, and a policy forbids self-approval';
  const named = users.slice(0, MAX_NAMED);
  const more = users.length > MAX_NAMED ? ` and ${users.length - MAX_NAMED} others` : '';
  return `an approving review by one of ${named.join(', ')}${more} publishes it once its gates are open`;
}
