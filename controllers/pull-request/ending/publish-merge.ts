import type { MergedState } from '../../../src/forge/forge.ts';
import type { SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { GitRepository } from '../../../src/git/git-repository.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import { describeForeign } from '../../../src/package/kernel/foreign-files.ts';
import { revisionKeyOf } from '../../../src/package/model/identity/identity.ts';
import { packagePath } from '../../../src/package/model/identity/layout.ts';
import { approverOf, REVIEWED_TYPE } from '../../../src/package/model/policy/review-policy.ts';
import type { Approval, Decision } from '../../../src/package/model/record/record.ts';
import { approverOfRecord } from '../../../src/package/model/record/withdrawn-approval.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import type { MergedBranch } from '../../../src/package/model/revision/revision-state.ts';
import { recordedBypass } from '../../../src/package/plan/records/recorded-bypass.ts';
import { decisionsMade } from '../../../src/package/store/approve-by-merge.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { keyOf, keyText } from '../../../src/resource/object/object.ts';
import type { EntryPoint, RequestContext } from '../../../src/resource/object/request-context.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { membersAt } from '../batch/batch-branch.ts';
import { isBatchBranch } from '../batch/batch-name.ts';
import { hostMerges } from '../merged/host-merges.ts';
import {
  type MergeAttempt,
  mergedProposal,
  mergeText,
  publishInName,
  requestInName,
} from '../merged/publish-in-name.ts';
import { type CountedDecision, countedDecision } from '../merging/counted-decision.ts';
import { rejectedAt, verdictsOf } from '../reviews/apply-reviews.ts';
import {
  approvalsAtMerge,
  mergeAsApproval,
  noRightText,
  reviewsAsCandidates,
  reviewsUntilMerge,
} from '../reviews/approvals-at-merge.ts';
import { commitsThatCount, ofProposal } from '../reviews/reviewed-package.ts';
import type { ReviewedProposal } from '../reviews/reviewed-proposal.ts';
import { contentAt } from '../reviews/same-content.ts';
import { authorsOf, type ReviewVerdicts } from '../reviews/verdicts.ts';
import type { MayApprove } from '../rights.ts';
import { writeComment } from '../write-comment.ts';
import { describeBypass, OUT_OF_BAND_TOPIC } from './describe-bypass.ts';

export interface MergeContext {
  readonly store: Pick<RevisionStore, 'change' | 'evaluate' | 'find' | 'repositoryOf' | 'update'>;
  readonly client: Client;
  readonly events: EventDeduplicator;
  readonly mayApprove: MayApprove | undefined;
  readonly signal: AbortSignal;
}

export type MergedPull = ReviewedProposal & {
  /** Sluice has written the head, of a branch of several proposals: its packages are there as they were proposed. */
  readonly isOwnHead?: boolean;
};

/** The decisions by which the host was to merge this head. */
export function decisionsForHead({ pull: { head }, evaluation }: Pick<MergedPull, 'pull' | 'evaluation'>): Decision[] {
  const made = decisionsMade(evaluation, evaluation.revision.namespace);
  // The branch of several proposals has the package of this one, which the kernel compares.
  return isBatchBranch(head.branch) ? made : made.filter(({ mergeOf }) => mergeOf === head.commit);
}

/**
 * Publishes a proposal at the commit to which the host merged it, if the kernel allows it. What was merged in spite of closed gates or missing
 * approvals is on the main branch all the same: it is recorded as out of band, which targets do not deliver. Returns why it
 * was not published: the repository may have to be read before.
 */
export async function publishMerge(context: MergeContext, proposal: MergedPull): Promise<SluiceError | undefined> {
  const { object, evaluation, review, pull, forge } = proposal;
  const { store, events, mayApprove, signal } = context;
  const { revision } = evaluation;
  const { commit = '' } = pull.merged ?? {};
  const { verdicts, objection, counted, merge } = await verdictsAtMerge(context, proposal);
  const { decision } = counted;
  const publishes = review.publishOn === 'merge';
  const candidates = [...merge.candidates, ...(publishes ? reviewsAsCandidates(verdicts) : [])];
  // Others merge by the rules of the host alone, which count as no approval.
  const { approvals, refused } =
    decision === undefined
      ? await approvalsAtMerge({ forge, mayApprove, signal }, review, candidates, keyOf(object))
      : { approvals: [], refused: [] };
  const isMapped = approverOf(review.approvers, pull.merged?.by) !== undefined;
  const notPermitted = isMapped && refused.length > 0 ? noRightText(refused) : undefined;
  const uncounted = decision === undefined ? merge.uncounted : undefined;
  const reason = uncounted === undefined ? mergeText(pull) : `${mergeText(pull)}; ${uncounted}`;
  // Without the decision the merge alone publishes only where the policy says so.
  const notDecided = publishes ? undefined : counted.problem;
  const head = await mergedBranch(store.repositoryOf(revision), revision, proposal);
  const requestFor = (attempt: Pick<MergeAttempt, 'by'>) =>
    decision === undefined ? requestInName(attempt, reason, pull.url) : asDecided(decision, reason);
  const name = keyText(keyOf(object));
  const publish = async (attempt: MergeAttempt) => {
    const { evidence = pull.url } = decision ?? attempt.by ?? {};
    // Otherwise the merge would be published by the rules of the host alone, which had let that user merge.
    const notApproved = (attempt.by === undefined ? (uncounted ?? notPermitted) : undefined) ?? notDecided;
    const merged = {
      ...mergedProposal(pull, attempt, notApproved),
      head,
      ...(objection === undefined ? {} : { objection }),
    };
    const update = { action: 'approve', expectedCommit: revision.commit, evidence, merged } as const;
    const request = requestFor(attempt);
    if (attempt.refusal !== undefined) {
      // What cannot be recorded either, such as another package, is no bypass.
      await store.update(name, update, { ...request, dryRun: true });
      // Before the proposal ends: a process that ends in between begins again, and the comment is changed in place.
      await reportBypass(context, proposal, attempt.refusal);
    }
    return store.update(name, update, request);
  };
  const published = await publishInName(approvals, publish);
  switch (published.result) {
    case 'published': {
      const message = `published at ${commit}: ${requestFor(published).reason}${await missingFiles(store.repositoryOf(revision), head, pull)}`;
      count(events.record(object, 'Normal', 'Approved', message, 'ended'));
      return undefined;
    }
    case 'out_of_band': {
      const message = `${reason} although it could not be published, so that it is out of band and is not delivered: ${published.refusal.message}`;
      count(events.record(object, 'Warning', 'OutOfBand', message, 'ended'));
      return undefined;
    }
    case 'not_published': {
      const message = `${reason}: ${published.refusal.message}`;
      store.repositoryOf(revision).refusals.noteEnd(revision.name, { reason: 'MergeNotPublished', message });
      count(events.record(object, 'Warning', 'MergeNotPublished', message, 'ended'));
      return published.refusal;
    }
  }

  /** A merge that is not published is looked at again and again, and counts once. */
  function count(isNew: boolean): void {
    if (isNew) hostMerges.publish({ origin: 'proposal', result: published.result });
  }
}

/**
 * The head that was merged, and all packages that it proposes, as far as the merge has what is proposed: users can push a commit that lists any
 * package. What Sluice has written there was proposed, whatever became of it since. Of a head that the repository does not have it is not known what
 * it brings.
 */
async function mergedBranch(
  repository: Pick<PackageRepository, 'git' | 'index' | 'layout' | 'trust'>,
  { path }: PackageRevision,
  { pull: { head, merged }, isOwnHead = false }: Pick<MergedPull, 'pull' | 'isOwnHead'>,
): Promise<MergedBranch> {
  const { git, index, layout } = repository;
  const { branch, commit } = head;
  const paths = new Set([path]);
  for (const { name } of isBatchBranch(branch) ? ((await membersAt(git, commit)) ?? []) : []) {
    const other = index.get(name);
    const folder = other?.path ?? packagePath(layout, revisionKeyOf(name).package);
    const isProposed =
      (isOwnHead && (await hasContentOf(git, merged?.commit, folder, [commit]))) ||
      (other !== undefined && (await isMergedAsProposed(repository, other, merged?.commit)));
    if (isProposed) paths.add(folder);
  }
  return { commit, paths: [...paths], ...(isOid(merged?.base ?? '') ? { onto: merged?.base ?? '' } : {}) };
}

/**
 * What the merge of a proposal has not brought to the main branch of the other files of its branch, which Sluice removes then: a rebase of the host
 * leaves out what users have changed in merges.
 */
async function missingFiles(
  { foreign: reader }: Pick<PackageRepository, 'foreign'>,
  { commit: head, paths }: MergedBranch,
  { head: { branch }, merged }: MergedPull['pull'],
): Promise<string> {
  if (isBatchBranch(branch) || merged === undefined || merged.commit === head) return '';
  const foreign = await reader.ofHead({ commit: head, paths }, merged.commit);
  if (foreign === undefined || foreign.isUnknown === true) return '';
  return `; the merge has left out ${describeForeign({ foreign })}, which ${head} has`;
}

/**
 * Whether a merge was published as this revision, or has the content that it proposes, or did since it was proposed: it can have changed since the
 * merge.
 */
async function isMergedAsProposed(
  { git, trust }: Pick<PackageRepository, 'git' | 'trust'>,
  revision: PackageRevision,
  merged: string | undefined,
): Promise<boolean> {
  const { lifecycle, commit, path, record, outOfBand } = revision;
  // Users can push a tag too.
  if (commit === merged) return outOfBand === undefined || (await recordedBypass(revision, trust)) !== undefined;
  if (lifecycle !== 'Proposed') return false;
  const steps = record?.steps ?? [];
  const since = steps.slice(steps.findLastIndex(({ action }) => action === 'propose'));
  return hasContentOf(git, merged, path, [commit, ...since.flatMap((step) => step.commit ?? [])]);
}

/** Whether a merge has the content of a package as one of these commits has it. */
async function hasContentOf(
  git: GitRepository,
  merged: string | undefined,
  path: string,
  commits: readonly string[],
): Promise<boolean> {
  if (!isOid(merged ?? '')) return false;
  const [there, ...trees] = await git.statObjects(
    [merged ?? '', ...commits.filter(isOid)].map((oid) => `${oid}:${path}`),
  );
  if (there === undefined) return false;
  if (trees.some((tree) => tree?.oid === there.oid)) return true;
  const content = await contentAt(git, there.oid);
  if (content === undefined) return false;
  for (const tree of trees) if (tree !== undefined && (await contentAt(git, tree.oid)) === content) return true;
  return false;
}

/** Of a pull request that several proposals share, `batch/write-batch.ts` reports all of them at once. */
async function reportBypass(context: MergeContext, proposal: MergedPull, refusal: SluiceError): Promise<void> {
  const { pull, evaluation } = proposal;
  if (isBatchBranch(pull.head.branch)) return;
  const about = { name: evaluation.revision.name, pullUrl: pull.url, by: pull.merged?.by };
  await writeComment(context, proposal, OUT_OF_BAND_TOPIC, describeBypass(about, refusal));
}

/** In the name of the approval that the host merged for. */
function asDecided(decision: Approval, merged: string): RequestContext {
  const { face, evidence } = decision;
  return {
    actor: approverOfRecord(decision),
    face: face as EntryPoint,
    reason: evidence === undefined ? merged : `${merged}, approved by ${evidence}`,
  };
}

/**
 * The reviews from before the merge, what they have against it: changes that were requested and that no gate shows yet, and the decision for it that
 * still counts.
 */
async function verdictsAtMerge(
  context: MergeContext,
  proposal: MergedPull,
): Promise<{
  readonly verdicts: ReviewVerdicts;
  readonly objection?: string;
  readonly counted: CountedDecision;
  readonly merge: Awaited<ReturnType<typeof mergeAsApproval>>;
}> {
  const { evaluation, pull, review } = proposal;
  const isShown = evaluation.gates.some(({ type, state }) => type === REVIEWED_TYPE && state === 'NotTrue');
  const { reviews, ...state }: MergedState =
    review.publishOn === 'merge' ? await proposal.readMerged(pull) : { reviews: await proposal.readReviews() };
  const verdicts = await verdictsOf(context, proposal, reviewsUntilMerge(reviews, pull));
  const counted = await countedDecision(context, proposal, decisionsForHead(proposal), verdicts);
  const repository = context.store.repositoryOf(evaluation.revision);
  const reviewed = ofProposal(repository, evaluation, pull, context.signal);
  const isCurrent = async (commit: string) => (await commitsThatCount(repository.git, reviewed, [commit])).has(commit);
  const { approvers } = review;
  const merge = await mergeAsApproval(pull, state, {
    ...{ approvers, isCurrent, rejectedAt: rejectedAt(evaluation.record) },
  });
  const { changesRequested } = verdicts;
  return {
    ...{ verdicts, counted, merge },
    ...(isShown || changesRequested.length === 0 ? {} : { objection: authorsOf(changesRequested) }),
  };
}
