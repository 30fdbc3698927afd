import { postComment } from '../../../src/forge/comments/post-comment.ts';
import type { PullRequest } from '../../../src/forge/forge.ts';
import { isPermanent } from '../../../src/forge/pause-after.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import { executedIn } from '../../../src/package/model/record/executed-commands.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { REPLY } from '../commands/apply-commands.ts';
import { describeSharedCommands } from '../commands/describe-commands.ts';
import { replyToSharedLate } from '../commands/late-commands.ts';
import {
  describeBypasses,
  describeMergedEnd,
  describeMergedEnds,
  NOT_PUBLISHED_TOPIC,
  OUT_OF_BAND_TOPIC,
} from '../ending/describe-bypass.ts';
import { hostMerges } from '../merged/host-merges.ts';
import { eventsOfMerge } from '../merged/reported-merges.ts';
import { NO_POLICY, unreviewedCheck } from '../merging/leave-without-policy.ts';
import { readRebuild } from '../merging/rebuild-branch.ts';
import { openPull } from '../opening/open-pull.ts';
import type { PullRequests } from '../pull-requests.ts';
import type { ShownProposals, ShownPull } from '../shown-proposals.ts';
import { textsOf } from '../text/opening-texts.ts';
import { isPreparedIn, proposalId, proposalsIn, withSection } from '../text/section.ts';
import { writeComment } from '../write-comment.ts';
import { writeChecks, writePull } from '../writing/write-pull.ts';
import { type ForeignCommit, membersAt, removeBatchBranch, updateBatchBranch } from './batch-branch.ts';
import { batchChecks } from './batch-checks.ts';
import type { BatchMember } from './batch-member.ts';
import { describeBatch, describeBatchEnd, describeTakenBack } from './describe-batch.ts';
import type { Batch } from './plan-batches.ts';

export interface BatchContext {
  readonly store: Pick<RevisionStore, 'find' | 'repositoryOf'>;
  readonly events: EventDeduplicator;
  readonly shown: ShownProposals;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  enqueue(key: ObjectKey): void;
}

/** A proposal that a shared pull request lists, and that no one policy has reviewed. */
export interface ReleasedMember {
  readonly proposal: string;
  readonly revision: PackageRevision | undefined;
  /** Why none of several policies applies; undefined where there is none. */
  readonly problem: string | undefined;
}

/** Until the new head of a branch is looked at. */
const SOON_MS = 2000;
const MAX_UNREAD_MS = 60_000;
/** Until the merge queue is looked at again for those that wait for its end. */
const QUEUED_MS = 60_000;
const REOPENING =
  'Open this pull request again to propose the packages again that have not changed since. Its branch is kept for seven days for that.';
const RELEASED =
  'No policy has the packages of this pull request reviewed here any more, so that nothing that is decided here has an effect. They are still proposed: see `sluice rpkg get`. Close this pull request if that stays so.';

/** Brings the pull request of a batch up to date. Returns whether anything was written, and after how many milliseconds to look again. */
export async function writeBatch(
  { store, events, shown, clock, enqueue, signal }: BatchContext,
  pulls: PullRequests,
  repository: PackageRepository,
  { branch, members: unsorted }: Batch<BatchMember>,
): Promise<{ readonly isWritten: boolean; readonly wait?: number | undefined }> {
  const all = unsorted.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  let pull = await pulls.ofBranch(branch, signal);
  const before = pull?.state === 'open' ? proposalsIn(pull.body) : undefined;
  const isQueued = before !== undefined && pull !== undefined && pulls.queued.has(pull.number);
  // Others join when it has left the merge queue. Where one that is listed has changed or left, the queue must not merge the present head.
  const queued = isQueued ? all.filter(({ proposal }) => before.includes(proposal)) : [];
  const members = queued.length > 0 ? queued : all;
  const [first] = members;
  if (first === undefined) return { isWritten: false };
  const { review } = first.described;
  const context = { store, events, signal };
  const proposals = members.map(({ proposal }) => proposal);
  const title = titleOf(members, review);
  const content = { branch, proposals, text: describeBatch(members, review), review, title };
  let hasText = false;
  // A proposal is listed before a merge can contain it.
  if (pull !== undefined && before !== undefined) {
    const entry = entryOf(shown, pulls, pull);
    const { text } = entry;
    const listed = members.filter(({ proposal }) => before.includes(proposal));
    // Of those that have left since, this process knows it from before.
    if (entry.title === undefined && listed.length === before.length) entry.title = titleOf(listed, review);
    await writePull(context, first.object, entry, pull, content);
    hasText = text === entry.text;
    // The next call finds them in its text.
    for (const { object, proposal } of members)
      if (!before.includes(proposal))
        events.record(object, 'Normal', 'PullRequestOpened', `it is reviewed in ${pull.url}`, 'opened');
    for (const { key } of members) if (shown.get(key)?.pull !== entry) enqueue(key);
    // Their conditions are part of what is merged: the branch gets all of them at once, and checks only then.
    if (waitsForReviews(entry, members, clock.monotonic())) return { isWritten: !hasText, wait: SOON_MS };
  }
  if (before === undefined) {
    if (!(await areProposed(store, repository, members, signal))) return { isWritten: false, wait: SOON_MS };
    // Another process can have opened it, and a user can have merged that, since the pull requests were read.
    const there = await pulls.forge.find(branch, pulls.base, signal);
    if (there !== undefined && pulls.note(there)) {
      for (const { key } of members) enqueue(key);
      return { isWritten: false, wait: SOON_MS };
    }
  }
  let about =
    pull === undefined || before === undefined ? undefined : { object: first.object, pull, forge: pulls.forge };
  let unreported: ForeignCommit | undefined;
  const onForeign = async (foreign: ForeignCommit) => {
    if (about === undefined) unreported = foreign;
    else await writeComment(context, about, 'pushed', describeTakenBack(foreign));
  };
  const { head, isPushed, isUpToDate } = await updateBatchBranch(repository, branch, members, signal, {
    ...{ isQueued, onForeign },
  });
  if (isPushed) pulls.notePush(branch);
  if (pull === undefined || before === undefined) pull = await openPull(context, members, pulls, content);
  about = { object: first.object, pull, forge: pulls.forge };
  if (unreported !== undefined) await onForeign(unreported);
  const entry = entryOf(shown, pulls, pull);
  const executed = new Map(entry.executed);
  for (const { name, commands } of members)
    for (const one of executedIn(commands, pull.url)) executed.set(`${one.id} ${name}`, { name, executed: one });
  await writePull(context, first.object, entry, (await pulls.ofBranch(branch, signal)) ?? pull, content);
  const reply = executed.size === 0 ? undefined : describeSharedCommands([...executed.values()]);
  if (reply !== undefined && reply !== entry.reply) {
    // A failure can follow the effect.
    delete entry.reply;
    if (await writeComment(context, about, REPLY, reply)) entry.reply = reply;
  }
  const hadChecks = entry.checks;
  const isNew = !entry.heads.has(head);
  shown.noteHead(entry, head);
  // If the host does not show the head yet, a poll wakes them when it does.
  const isNewlyShown = isNew && (await pulls.ofBranch(branch, signal))?.head.commit === head;
  for (const { key } of members) if (isNewlyShown || shown.get(key)?.pull !== entry) enqueue(key);
  if (before === undefined && waitsForReviews(entry, members, clock.monotonic()))
    return { isWritten: false, wait: SOON_MS };
  const checks = batchChecks(members, pull.url);
  await writeChecks(
    context,
    entry,
    head,
    checks,
    members.map(({ revision }) => revision),
  );
  const isReady = review.publishOn === 'merge' && checks[0]?.state === 'success';
  entry.awaitsMerge = isReady;
  const facts = { isReady, isUpToDate, isQueued, isOpen: true };
  const heads = `${head} ${repository.index.mainHead}`;
  const rebuild = await readRebuild({ clock, signal }, facts, heads, entry);
  if (rebuild === 'rebuild') {
    const rebuilt = await updateBatchBranch(repository, branch, members, signal, { rebase: true, onForeign });
    shown.noteHead(entry, rebuilt.head);
    pulls.notePush(branch);
    return { isWritten: true, wait: SOON_MS };
  }
  return {
    isWritten: isPushed || !hasText || hadChecks !== entry.checks,
    wait: members.length < all.length ? QUEUED_MS : rebuild?.requeueAfter,
  };
}

/**
 * Whether the repository, which is read again, has these proposals. Another process can have published them since, and then opened and ended their
 * pull request; a read during that can have a branch whose record is gone, which looks like another proposal.
 */
async function areProposed(
  store: BatchContext['store'],
  repository: PackageRepository,
  members: readonly BatchMember[],
  signal: AbortSignal,
): Promise<boolean> {
  await repository.catchUp(signal, 'branches');
  return members.every(({ key, proposal }) => {
    const now = store.find(keyText(key));
    return now?.lifecycle === 'Proposed' && proposalId(now.uid, now.record?.steps ?? []) === proposal;
  });
}

/** The title that Sluice gives a pull request with these members, sorted by name. */
function titleOf(members: readonly BatchMember[], review: ReviewPolicy): string {
  const revisions = members.map(({ revision }) => revision);
  return textsOf(revisions, review).title;
}

/** True while reviews of members were not read, but not for ever: one that cannot be read does not hold the others up. */
function waitsForReviews(entry: ShownPull, members: readonly BatchMember[], nowMs: number): boolean {
  if (members.every(({ isReviewed }) => isReviewed)) {
    delete entry.unreadSinceMs;
    return false;
  }
  entry.unreadSinceMs ??= nowMs;
  return nowMs - entry.unreadSinceMs < MAX_UNREAD_MS;
}

function entryOf(shown: ShownProposals, pulls: PullRequests, pull: PullRequest): ShownPull {
  const entry = shown.pullOf(pulls, pull.head.branch, pull);
  entry.isPrepared ??= isPreparedIn(pull.body);
  return entry;
}

/**
 * No policy, or more than one, has its packages reviewed now, which its check says, and in the first case its text. It stays open: one that is closed
 * would reject them as soon as one policy has them reviewed again.
 */
export async function releaseBatch(
  context: Pick<BatchContext, 'shown' | 'signal' | 'store'>,
  pulls: PullRequests,
  repository: PackageRepository,
  pull: PullRequest,
  released: readonly ReleasedMember[],
): Promise<void> {
  const { shown, signal } = context;
  const { branch } = pull.head;
  // The host may not show yet what was pushed last.
  const head = (await repository.git.resolveRef(`refs/heads/${branch}`)) ?? pull.head.commit;
  const entry = entryOf(shown, pulls, pull);
  const revisions = released.flatMap(({ revision }) => revision ?? []);
  const problem = released.find((one) => one.problem !== undefined)?.problem;
  const check = unreviewedCheck(problem ?? NO_POLICY, pull.url);
  entry.awaitsMerge = false;
  await writeChecks(context, entry, head, [check], revisions);
  if (problem !== undefined) return;
  const proposals = released.map(({ proposal }) => proposal);
  const body = withSection(pull.body, proposals, RELEASED);
  if (body !== pull.body) pulls.note(await pulls.forge.update(pull.number, { body }, signal));
  shown.forget(pulls, branch);
}

/**
 * None of its packages is proposed any more: the pull request says what became of them, commands that come too late get a reply, and its branch is
 * removed, unless it is kept, since the pull request can be opened again.
 */
export async function finishBatch(
  context: Pick<BatchContext, 'events' | 'signal' | 'store' | 'shown'> & { readonly client: Client },
  pulls: PullRequests,
  repository: PackageRepository,
  pull: PullRequest,
  { isKept, isFollowed }: { readonly isKept: boolean; readonly isFollowed: boolean },
): Promise<void> {
  const { store, shown, signal } = context;
  const { branch, commit } = pull.head;
  const members = (await membersAt(repository.git, commit)) ?? [];
  // It is known that the merge publishes none of these.
  const { outside = new Set() } = shown.pullOf(pulls, branch, pull);
  const ended = members.map(({ name }) => ({
    name,
    revision: store.find(keyText({ namespace: repository.namespace, name })),
  }));
  const marked = proposalsIn(pull.body);
  const proposals = marked.length > 0 ? marked : members.map(({ proposal }) => proposal);
  const text = isKept ? `${describeBatchEnd(ended)}\n\n${REOPENING}` : describeBatchEnd(ended);
  const body = proposals.length === 0 ? pull.body : withSection(pull.body, proposals, text);
  const change = pull.state === 'open' ? { body, state: 'closed' as const } : { body };
  // It can have been merged since it was read.
  let now = pull;
  try {
    if (pull.state === 'open' || body !== pull.body) {
      now = await pulls.forge.update(pull.number, change, signal);
      pulls.note(now);
    }
    const [review] = ended.flatMap(({ revision }) => (revision && repository.policyFor(revision).review) ?? []);
    const { executed } = shown.pullOf(pulls, branch, pull);
    if (review !== undefined)
      await replyToSharedLate(
        { review, pull, forge: pulls.forge },
        [...executed.values()],
        { ended, isFollowed },
        signal,
      );
  } catch (error) {
    // What only an operator can change does not matter any more.
    if (!isPermanent(error)) throw error;
  }
  await reportBypasses(pulls, now, ended, signal);
  const unreported = ended.filter(({ name }) => !outside.has(keyText({ namespace: repository.namespace, name })));
  await reportEnds(context, pulls, repository, now, unreported);
  if (!isKept) await removeBatchBranch(repository, branch, signal);
}

/** One comment about all packages whose publication by the merge is out of band. The branch stays until it was written. */
async function reportBypasses(
  pulls: PullRequests,
  { number, state, merged }: PullRequest,
  ended: readonly { readonly name: string; readonly revision: PackageRevision | undefined }[],
  signal: AbortSignal,
): Promise<void> {
  if (state !== 'merged') return;
  const bypassed = ended.flatMap(({ name, revision }) =>
    revision?.outOfBand !== undefined && revision.commit === merged?.commit
      ? { name, outOfBand: revision.outOfBand }
      : [],
  );
  if (bypassed.length === 0) return;
  await postComment(pulls.forge, number, OUT_OF_BAND_TOPIC, describeBypasses(bypassed, merged?.by), signal);
}

/**
 * One comment about all packages that were rejected or deleted before the merge was read, which it therefore does not publish, and an event of each,
 * of the Repository for one that is gone.
 */
async function reportEnds(
  { client, events, signal }: Parameters<typeof finishBatch>[0],
  { forge }: PullRequests,
  { namespace, repository }: PackageRepository,
  { number, url, state, merged }: PullRequest,
  members: readonly { readonly name: string; readonly revision: PackageRevision | undefined }[],
): Promise<void> {
  const ended = members.flatMap(({ name, revision }) =>
    revision === undefined || revision.lifecycle === 'Draft' ? { name, isDeleted: revision === undefined } : [],
  );
  if (state !== 'merged' || ended.length === 0) return;
  const ofMerge = await eventsOfMerge(client, { namespace, url }, signal);
  const isReported = (name: string) =>
    ofMerge.some((event) => event.involvedObject.name === name || event.message.includes(` ${name}, `));
  const unreported = ended.filter(({ name }) => !isReported(name));
  const ofDeleted = unreported.some(({ isDeleted }) => isDeleted)
    ? await client.find(repositoryKind, { namespace, name: repository }, { signal })
    : undefined;
  for (const { name, isDeleted } of unreported) {
    const object = isDeleted ? ofDeleted : await client.find(packageRevisionKind, { namespace, name }, { signal });
    if (object === undefined) continue;
    const text = describeMergedEnd({ name, isDeleted, pullUrl: url, by: merged?.by });
    if (events.recordFinal(object, 'Warning', 'MergeNotPublished', text, `merge ${url} ${name}`))
      hostMerges.publish({ origin: 'proposal', result: 'not_published' });
  }
  const text = describeMergedEnds({ ended, pullUrl: url, by: merged?.by });
  await postComment(forge, number, NOT_PUBLISHED_TOPIC, text, signal);
}
