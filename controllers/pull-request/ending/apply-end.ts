import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { Forge, PullRequest } from '../../../src/forge/forge.ts';
import type { SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import { REVIEW_ACTOR } from '../../../src/package/model/policy/review-policy.ts';
import { publishedRecordOf } from '../../../src/package/model/record/commit-message.ts';
import type { LifecycleStep, RevisionRecord } from '../../../src/package/model/record/record.ts';
import { lastRequestOf } from '../../../src/package/model/revision/attribution.ts';
import { isPublished, type PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import type { SyncRequests } from '../../repository/sync-requests.ts';
import { isBatchBranch } from '../batch/batch-name.ts';
import { repositoryOf, type Shown, type ShownPull } from '../shown-proposals.ts';
import { describeEnd, isEnd } from '../text/describe-proposal.ts';
import { inlineCode, plainLine } from '../text/quote.ts';
import { proposalsIn, sectionOf, withSection } from '../text/section.ts';
import { writeComment } from '../write-comment.ts';
import { awaitMerge, dependenciesOf } from './awaited-merge.ts';
import { describeNotPublished, NOT_PUBLISHED_TOPIC, outOfBandNote } from './describe-bypass.ts';
import { fetchHead } from './fetch-head.ts';
import { decisionForHead, type MergeContext, type MergedPull, publishMerge } from './publish-merge.ts';

/** In place of a lifecycle. */
const DELETED = 'deleted';
/** Until what the host merged is looked for again at first: in what was fetched, and after a fetch that did not have it. */
const MERGE_FETCH_MS = 1000;
const MERGE_RETRY_MS = 10_000;
/** After this time it is reported that the commit is missing, and what is not known of a head that is missing is out of band. */
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
    const waitedMs = before === undefined ? 0 : clock.monotonic() - before.sinceMs;
    // The host reports a merge before it was fetched.
    const [found] = await repository.git.statObjects(isOid(commit) ? [`${commit}:${revision.path}`] : []);
    // What a squash or a rebase has brought is not known without it, and of which proposals either.
    const isFetched = found !== undefined && ((await fetchHead(repository, pull, signal)) || waitedMs >= MISSING_MS);
    const refusal = isFetched ? await publishMerge(context, merged) : undefined;
    if (isFetched && refusal === undefined) return undefined;
    const nowMs = clock.monotonic();
    // What could not be published at first may be as soon as the repository was read.
    if (before !== undefined && refusal !== undefined) await reportNotPublished(context, merged, memory, refusal);
    const firstMs = isFetched ? MERGE_RETRY_MS : MERGE_FETCH_MS;
    const awaited = awaitMerge(before, dependenciesOf({ ...merged, mainHead: repository.index.mainHead }), {
      firstMs,
      nowMs,
    });
    memory.awaited = awaited;
    // What was read just now was not there.
    if (awaited.untilMs !== before?.untilMs) requests?.addOwn(repositoryOf(keyOf(object)), 'branches');
    if (found === undefined && nowMs - awaited.sinceMs >= MISSING_MS) {
      const message = `${pull.url} was merged, but is not published: its commit ${inlineCode(commit)} does not arrive in the repository ${repositoryOf(keyOf(object)).name}; check that this is the one of the host and that its main branch was not reset, or reject the revision`;
      events.record(object, 'Warning', 'MergeNotPublished', message, 'ended');
    }
    return { requeueAfter: awaited.untilMs - nowMs, reason: 'the main branch has to be read' };
  }
  if (pull.state === 'merged') {
    const by = pull.merged?.by === undefined ? '' : ` by ${plainLine(pull.merged.by)}`;
    const message = `${pull.url} was merged${by} on the host, which publishes nothing; approve the revision to publish it, or revert the merge and reject it`;
    events.record(object, 'Warning', 'MergedOutside', message, 'ended');
    return undefined;
  }
  if (isRejected(merged.evaluation.record) || saysDeleted(pull.body)) {
    const message = `the branch of ${pull.url} was restored after it was closed; open it again on the host to propose it there, or reject the revision`;
    events.record(object, 'Warning', 'PullRequestClosed', message, 'ended');
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
  await writeComment(context, merged, NOT_PUBLISHED_TOPIC, text);
  memory.notPublished = text;
}

/** What the reason of a rejection by the end of a pull request begins with. */
export function closedReason(url: string): string {
  return `${url} was closed`;
}

/** Whether the merge publishes: by the policy, or as it was decided that the host merges this commit. */
export function isPublication({
  review,
  pull,
  evaluation,
}: Pick<MergedPull, 'review' | 'pull' | 'evaluation'>): boolean {
  return (
    pull.state === 'merged' && (review.publishOn === 'merge' || decisionForHead({ pull, evaluation }) !== undefined)
  );
}

/**
 * Whether a pull request that has ended was the one of this proposal. Users may edit its body, so that the marker in it may be gone or another
 * one: then what is known from before decides about a merge; after a restart, that it merged this commit, of a revision that was proposed once.
 */
export function isOfProposal(
  { state, body, number, head }: PullRequest,
  about: {
    readonly proposal: string;
    readonly evaluation: {
      readonly revision: Pick<Revision, 'commit'>;
      readonly record: Pick<RevisionRecord, 'steps'>;
    };
    readonly known: { readonly proposal: string; readonly pull: Pick<ShownPull, 'number'> } | undefined;
  },
): boolean {
  const { proposal, known, evaluation } = about;
  if (state === 'open') return false;
  if (proposalsIn(body).includes(proposal)) return true;
  if (state !== 'merged') return false;
  if (known?.pull.number === number && known.proposal === proposal) return true;
  const proposals = evaluation.record.steps.filter(({ action }) => action === 'propose');
  return head.commit === evaluation.revision.commit && proposals.length === 1;
}

/** True if the last step was a rejection: the proposal is there since its branch was restored, and its end on the host was applied. */
export function isRejected({ steps }: Pick<RevisionRecord, 'steps'>): boolean {
  return steps.findLast(({ action }) => action !== 'push')?.action === 'reject';
}

/** A proposal has ended in Sluice: the last state is left in its pull request, which the host closes as the branch is gone. */
export async function leavePull(
  store: Pick<RevisionStore, 'find'>,
  { key, pull: { pulls, branch, number }, proposal }: Shown,
  lifecycle: string,
  signal: AbortSignal,
): Promise<void> {
  const pull = pulls.readWithin(branch, number, RECENT_MS) ?? (await pulls.forge.get(number, signal));
  const text = endText(key, pull, store.find(keyText(key)), lifecycle);
  if (!proposalsIn(pull.body).includes(proposal)) return;
  const body = withSection(pull.body, [proposal], text);
  await pulls.forge.update(number, { body }, signal);
}

/** What the pull request of a proposal says once that has ended; undefined for a revision that was deleted. */
export function endText(
  { name }: ObjectKey,
  { state, head }: Pick<PullRequest, 'state' | 'head'>,
  revision: Revision | undefined,
  lifecycle: string = revision?.lifecycle ?? DELETED,
): string {
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

/** The step that ended the last proposal of a revision, if none follows it. */
export function endStepOf(revision: Revision): LifecycleStep | undefined {
  const steps = isPublished(revision) ? publishedRecordOf(revision.tip.facts)?.steps : revision.record?.steps;
  const last = steps?.findLast(({ action }) => ['propose', 'approve', 'reject'].includes(action));
  return steps?.some(({ action }) => action === 'propose') === true && last?.action !== 'propose' ? last : undefined;
}

/** True for a draft that the end of a pull request has rejected. */
export function isRejectedByEnd(revision: Revision): boolean {
  if (revision.lifecycle !== 'Draft') return false;
  const step = endStepOf(revision);
  return step?.action === 'reject' && step.by === REVIEW_ACTOR && /^\S+ was closed/.test(step.reason ?? '');
}
