import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import { postComment } from '../../../src/forge/comments/post-comment.ts';
import type { Forge, PullRequest } from '../../../src/forge/forge.ts';
import type { SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import { isRejected } from '../../../src/package/kernel/revision-state.ts';
import { REVIEW_ACTOR } from '../../../src/package/model/policy/review-policy.ts';
import { isSamePage } from '../../../src/package/model/record/executed-commands.ts';
import { lastRequestOf } from '../../../src/package/model/revision/attribution.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { RefusalNotes } from '../../../src/package/transaction/refusal-notes.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import type { SyncRequests } from '../../repository/sync-requests.ts';
import { isBatchBranch } from '../batch/batch-name.ts';
import { awaitMerge, dependenciesOf } from '../merged/awaited-merge.ts';
import { awaitedMerges } from '../merged/earlier-merges.ts';
import { fetchHead, MISSING_HEAD_MS } from '../merged/fetch-head.ts';
import { repositoryOf, type Shown } from '../shown-proposals.ts';
import { describeEnd, isEnd } from '../text/describe-proposal.ts';
import { inlineCode, plainLine } from '../text/quote.ts';
import { proposalsIn, sectionOf, withSection } from '../text/section.ts';
import { writeComment } from '../write-comment.ts';
import { describeNotPublished, describePublishedLater, NOT_PUBLISHED_TOPIC, outOfBandNote } from './describe-bypass.ts';
import { endStepOf } from './end-step.ts';
import { decisionsForHead, type MergeContext, type MergedPull, publishMerge } from './publish-merge.ts';

/** What a pull request says of a proposal that no policy selects any more. */
const NOT_REVIEWED =
  'No policy with `spec.review` selects it any more: reviews and the merge of this pull request publish nothing, and closing it rejects nothing.';
/** In place of a lifecycle. */
const DELETED = 'deleted';
const ENDS_PUBLISHED: readonly string[] = ['Published', 'DeletionProposed'];
/** Until what the host merged is looked for again at first: in what was fetched, and after a fetch that did not have it. */
const MERGE_FETCH_MS = 1000;
const MERGE_RETRY_MS = 10_000;
/** After this time it is reported that the commit is missing. */
const MISSING_MS = 60_000;
/** An approval reads the pull request just before the proposal ends, which takes a push. */
const RECENT_MS = 5000;

export interface EndContext extends MergeContext {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'change' | 'evaluate' | 'find' | 'repositoryOf' | 'update'>;
  readonly clock: Clock;
  readonly requests: Pick<SyncRequests, 'addOwn'> | undefined;
}

/** A pull request of this proposal has ended on the host: a merge publishes it, if the policy says so; anything else rejects it. */
export async function applyEnd(
  context: EndContext,
  merged: MergedPull & { readonly forge: Forge },
  memory: Pick<Shown, 'awaited' | 'notPublished'>,
): Promise<ReconcileResult | undefined> {
  const { client, store, events, clock, requests, signal } = context;
  const { object, pull, forge } = merged;
  if (isPublication(merged)) {
    const { revision } = merged.evaluation;
    const commit = pull.merged?.commit ?? '';
    const repository = store.repositoryOf(revision);
    const before = memory.awaited;
    // The host reports a merge before it was fetched.
    const [found] = await repository.git.statObjects(isOid(commit) ? [`${commit}:${revision.path}`] : []);
    const foundMs = found === undefined ? undefined : (before?.foundMs ?? clock.monotonic());
    // Git may have been out of reach until then, for the earlier merges too.
    const waitedMs = foundMs === undefined ? 0 : clock.monotonic() - foundMs;
    // What a squash or a rebase has brought is not known without it, and of which proposals either.
    const isFetched =
      found !== undefined && ((await fetchHead(repository, pull, signal)) || waitedMs >= MISSING_HEAD_MS);
    const at = { package: revision.key.package, path: revision.path, commit, number: pull.number };
    // An earlier one of the same branch publishes nothing any more. A fork may have a branch of this name too.
    const counts = async ({ head }: PullRequest) => !head.isSameRepository || head.branch !== pull.head.branch;
    const earlier = isFetched ? await awaitedMerges(repository, forge, at, { waitedMs, counts, signal }) : [];
    const isDue = isFetched && earlier.length === 0;
    const refusal = isDue ? await publishMerge(context, merged) : undefined;
    if (isDue && refusal === undefined) return undefined;
    const nowMs = clock.monotonic();
    if (earlier.length > 0) {
      const message = `${pull.url} was merged, and is published after earlier merges of its package, for each of which it waits two minutes at most: ${earlier.map(({ url }) => url).join(', ')}`;
      repository.refusals.noteEnd(revision.name, { reason: 'MergeWaits', message });
    }
    // What could not be published at first may be as soon as the repository was read.
    if (before?.foundMs !== undefined && refusal !== undefined)
      await reportNotPublished(context, merged, memory, refusal);
    const firstMs = isDue ? MERGE_RETRY_MS : MERGE_FETCH_MS;
    const awaited = awaitMerge(before, dependenciesOf({ ...merged, index: repository.index }), {
      firstMs,
      nowMs,
      foundMs,
    });
    memory.awaited = awaited;
    // What was read just now was not there.
    if (awaited.untilMs !== before?.untilMs) requests?.addOwn(repositoryOf(keyOf(object)), 'branches');
    if (found === undefined && nowMs - awaited.sinceMs >= MISSING_MS) {
      const message = `${pull.url} was merged, but is not published: its commit ${inlineCode(commit)} does not arrive in the repository ${repositoryOf(keyOf(object)).name}; check that this is the one of the host and that its main branch was not reset, or reject the revision`;
      reportEnd(context, merged, { reason: 'MergeNotPublished', message });
    }
    return { requeueAfter: awaited.untilMs - nowMs, reason: 'the main branch has to be read' };
  }
  if (pull.state === 'merged') {
    const by = pull.merged?.by === undefined ? '' : ` by ${plainLine(pull.merged.by)}`;
    const message = `${pull.url} was merged${by} on the host, which publishes nothing; approve the revision to publish it, or revert the merge and reject it`;
    reportEnd(context, merged, { reason: 'MergedOutside', message });
    return undefined;
  }
  // Its end was applied.
  if (isRejected(merged.evaluation.record) || saysDeleted(pull.body)) {
    const message = `the branch of ${pull.url} was restored after it was closed; open it again on the host to propose it there, or reject the revision`;
    reportEnd(context, merged, { reason: 'PullRequestClosed', message });
    return undefined;
  }
  const closing = await forge.closing(pull, signal);
  const by = closing === undefined ? '' : ` by ${plainLine(closing.by)}`;
  const comment = closing?.comment === undefined ? '' : `: ${plainLine(closing.comment, 500)}`;
  const reason = `${closedReason(pull.url)}${by}${comment}`;
  const rejected = { ...object, spec: { ...object.spec, lifecycle: 'Draft' as const } };
  await client.subResource('approval').update(packageRevisionKind, rejected, { reason, signal });
  events.record(object, 'Normal', 'Rejected', reason, 'ended');
  return undefined;
}

/** Reports why a proposal is still there although its pull request has ended. */
function reportEnd(
  { store, events }: Pick<EndContext, 'events' | 'store'>,
  { object, evaluation: { revision } }: MergedPull,
  end: Parameters<RefusalNotes['noteEnd']>[1] & object,
): void {
  store.repositoryOf(revision).refusals.noteEnd(revision.name, end);
  events.record(object, 'Warning', end.reason, end.message, 'ended');
}

/**
 * Whether the text of a pull request is that of a revision that was deleted: the branch of the proposal was gone, for which hosts close the pull
 * request in the name of the user who deleted it. Users may edit the text, which at most leaves the proposal as it is.
 */
function saysDeleted(body: string): boolean {
  return isEnd(sectionOf(body) ?? '', DELETED);
}

/** Of a pull request that other proposals share, the events of each report it. */
async function reportNotPublished(
  context: EndContext,
  merged: MergedPull & { readonly forge: Forge },
  memory: Pick<Shown, 'notPublished'>,
  refusal: SluiceError,
): Promise<void> {
  const { pull, evaluation } = merged;
  if (isBatchBranch(pull.head.branch)) return;
  const about = { name: evaluation.revision.name, pullUrl: pull.url, by: pull.merged?.by };
  const text = describeNotPublished(about, refusal);
  if (text === memory.notPublished) return;
  // A failure can follow the effect.
  memory.notPublished = '';
  await writeComment(context, merged, NOT_PUBLISHED_TOPIC, text);
  memory.notPublished = text;
}

/** What the reason of a rejection by the end of a pull request begins with. */
function closedReason(url: string): string {
  return `${url} was closed`;
}

/** Whether a rejection was by the end of this pull request, whose repository can have been renamed since. */
export function isClosedReason(reason: string | undefined, url: string): boolean {
  const closed = /^(\S+) was closed/.exec(reason ?? '')?.[1];
  return closed !== undefined && isSamePage(closed, url);
}

/** Whether the merge publishes: by the policy, or as it was decided that the host merges this commit. */
export function isPublication({
  review,
  pull,
  evaluation,
}: Pick<MergedPull, 'review' | 'pull' | 'evaluation'>): boolean {
  return pull.state === 'merged' && (review.publishOn === 'merge' || decisionsForHead({ pull, evaluation }).length > 0);
}

/**
 * A proposal has ended in Sluice: the last state is left in its pull request, which the host closes as the branch is gone. Returns it.
 */
export async function leavePull(
  store: Pick<RevisionStore, 'find'>,
  { key, pull: { pulls, branch, number }, proposal, notPublished, isCommented }: Shown,
  lifecycle: string,
  signal: AbortSignal,
): Promise<PullRequest> {
  const pull = pulls.readWithin(branch, number, RECENT_MS) ?? (await pulls.forge.get(number, signal));
  const text = endText(key, pull, store.find(keyText(key)), lifecycle);
  if ((notPublished !== undefined || isCommented === true) && ENDS_PUBLISHED.includes(lifecycle))
    await postComment(pulls.forge, number, NOT_PUBLISHED_TOPIC, describePublishedLater(key.name), signal);
  if (!proposalsIn(pull.body).includes(proposal)) return pull;
  const body = withSection(pull.body, [proposal], text);
  return pulls.forge.update(number, { body }, signal);
}

/** What the pull request of a proposal says once that has ended; undefined for a revision that was deleted. */
export function endText(
  { name }: ObjectKey,
  { state, head }: Pick<PullRequest, 'state' | 'head'>,
  revision: Revision | undefined,
  lifecycle: string = revision?.lifecycle ?? DELETED,
): string {
  // It has not ended, but is not followed any more.
  if (lifecycle === 'Proposed') return describeEnd({ name, lifecycle }, NOT_REVIEWED);
  const last = revision === undefined ? undefined : lastRequestOf(revision);
  const by = last === undefined ? '' : `Last step: ${inlineCode(last.action)} by ${inlineCode(last.by)} at ${last.at}.`;
  const mayReturn = revision === undefined || isRejectedByEnd(revision);
  // Hosts open none again that was merged.
  const how =
    state === 'merged'
      ? `as it was merged, push ${inlineCode(head.commit)} to ${inlineCode(head.branch)}.`
      : 'as it is, restore the branch of this pull request, and open it again.';
  const again = mayReturn ? `To propose it again ${how}` : '';
  // What came around the gates has no step that counts.
  const reason = revision?.outOfBand === undefined ? by : outOfBandNote(revision.outOfBand);
  return describeEnd({ name, lifecycle }, `${reason} ${again}`.trim());
}

/** True for a draft that the end of a pull request has rejected. */
export function isRejectedByEnd(revision: Revision): boolean {
  if (revision.lifecycle !== 'Draft') return false;
  const step = endStepOf(revision);
  return step?.action === 'reject' && step.by === REVIEW_ACTOR && /^\S+ was closed/.test(step.reason ?? '');
}
