import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { Forge, PullRequest } from '../../../src/forge/forge.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import type { RevisionRecord } from '../../../src/package/model/record/record.ts';
import { lastRequestOf } from '../../../src/package/model/revision/attribution.ts';
import type { RevisionEvaluation, RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText } from '../../../src/resource/object/object.ts';
import type { SyncRequests } from '../../repository/sync-requests.ts';
import { repositoryOf, type Shown, type ShownPull } from '../shown-proposals.ts';
import { describeEnd } from '../text/describe-proposal.ts';
import { inlineCode, plainLine } from '../text/quote.ts';
import { proposalsIn, withSection } from '../text/section.ts';
import { decisionForHead, type MergeContext, type MergedPull, publishMerge } from './publish-merge.ts';

/** Until what the host merged is looked for again: in what was fetched, and after a fetch that did not have it. */
const MERGE_FETCH_MS = 1000;
const MERGE_RETRY_MS = 10_000;
/** An approval reads the pull request just before the proposal ends. */
const RECENT_MS = 2000;

export interface EndContext extends MergeContext {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'change' | 'evaluate' | 'find' | 'repositoryOf' | 'update'>;
  readonly requests: Pick<SyncRequests, 'add'> | undefined;
}

/** A pull request of this proposal has ended on the host: a merge publishes it, if the policy says so; anything else rejects it. */
export async function applyEnd(
  context: EndContext,
  merged: MergedPull & { readonly forge: Forge },
): Promise<ReconcileResult | undefined> {
  const { client, store, events, requests, signal } = context;
  const { object, pull, forge } = merged;
  if (isPublication(merged)) {
    const { revision } = merged.evaluation;
    const commit = pull.merged?.commit ?? '';
    // The host reports a merge before it was fetched.
    const [found] = await store
      .repositoryOf(revision)
      .git.statObjects(isOid(commit) ? [`${commit}:${revision.path}`] : []);
    const isFetched = found !== undefined;
    if (isFetched && (await publishMerge(context, merged))) return undefined;
    requests?.add(repositoryOf(keyOf(object)), 'branches');
    const requeueAfter = isFetched ? MERGE_RETRY_MS : MERGE_FETCH_MS;
    return { requeueAfter, reason: 'the main branch has to be read' };
  }
  if (pull.state === 'merged') {
    const by = pull.merged?.by === undefined ? '' : ` by ${plainLine(pull.merged.by)}`;
    const message = `${pull.url} was merged${by} on the host, which publishes nothing; approve the revision to publish it, or revert the merge and reject it`;
    events.record(object, 'Warning', 'MergedOutside', message, 'ended');
    return undefined;
  }
  if (isRejected(merged.evaluation.record)) {
    const message = `the branch of ${pull.url} was restored after it was closed; open it again on the host to propose it there, or reject the revision`;
    events.record(object, 'Warning', 'PullRequestClosed', message, 'ended');
    return undefined;
  }
  const closing = await forge.closing(pull, signal);
  const by = closing === undefined ? '' : ` by ${plainLine(closing.by)}`;
  const comment = closing?.comment === undefined ? '' : `: ${plainLine(closing.comment, 500)}`;
  const reason = `${pull.url} was closed${by}${comment}`;
  const rejected = { ...object, spec: { ...object.spec, lifecycle: 'Draft' as const } };
  await client.subResource('approval').update(packageRevisionKind, rejected, { reason, signal });
  events.record(object, 'Normal', 'Rejected', reason, 'ended');
  return undefined;
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
    readonly evaluation: Pick<RevisionEvaluation, 'revision' | 'record'>;
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
  const revision = store.find(keyText(key));
  const last = revision === undefined ? undefined : lastRequestOf(revision);
  const by = last === undefined ? '' : `Last step: ${inlineCode(last.action)} by ${inlineCode(last.by)} at ${last.at}.`;
  const pull = pulls.readWithin(branch, number, RECENT_MS) ?? (await pulls.forge.get(number, signal));
  if (!proposalsIn(pull.body).includes(proposal)) return;
  const body = withSection(pull.body, [proposal], describeEnd({ name: key.name, lifecycle }, by));
  await pulls.forge.update(number, { body }, signal);
}
