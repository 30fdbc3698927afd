import type { PullRequest } from '../../../src/forge/forge.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import { keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { REPLY, writeComment } from '../commands/apply-commands.ts';
import { describeSharedCommands } from '../commands/describe-commands.ts';
import { readRebuild } from '../merging/rebuild-branch.ts';
import { openPull } from '../opening/open-pull.ts';
import { pauseAfter } from '../pause-after.ts';
import type { PullRequests } from '../pull-requests.ts';
import type { ShownProposals, ShownPull } from '../shown-proposals.ts';
import { inlineCode } from '../text/quote.ts';
import { isPreparedIn, proposalsIn, withSection } from '../text/section.ts';
import { writeChecks, writePull } from '../writing/write-pull.ts';
import { membersAt, removeBatchBranch, updateBatchBranch } from './batch-branch.ts';
import { batchChecks } from './batch-checks.ts';
import type { BatchMember } from './batch-member.ts';
import { describeBatch, describeBatchEnd } from './describe-batch.ts';
import type { Batch } from './plan-batches.ts';

export interface BatchContext {
  readonly store: Pick<RevisionStore, 'find' | 'repositoryOf'>;
  readonly events: EventDeduplicator;
  readonly shown: ShownProposals;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  enqueue(key: ObjectKey): void;
}

/** Until the new head of a branch is looked at. */
const SOON_MS = 2000;
const MAX_UNREAD_MS = 60_000;
const RELEASED =
  'No policy has the packages of this pull request reviewed here any more, so that nothing that is decided here has an effect. They are still proposed: see `sluice rpkg get`. Close this pull request if that stays so.';

/** Brings the pull request of a batch up to date. Returns whether anything was written, and after how many milliseconds to look again. */
export async function writeBatch(
  { store, events, shown, clock, enqueue, signal }: BatchContext,
  pulls: PullRequests,
  repository: PackageRepository,
  { branch, members: unsorted }: Batch<BatchMember>,
): Promise<{ readonly isWritten: boolean; readonly wait?: number | undefined }> {
  const members = unsorted.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const [first] = members;
  if (first === undefined) return { isWritten: false };
  const { review } = first.described;
  const context = { store, events, signal };
  const proposals = members.map(({ proposal }) => proposal);
  const content = { branch, proposals, text: describeBatch(members, review), review };
  let pull = await pulls.ofBranch(branch, signal);
  const before = pull?.state === 'open' ? proposalsIn(pull.body) : undefined;
  let hasText = false;
  // A proposal is listed before a merge can contain it.
  if (pull !== undefined && before !== undefined) {
    const entry = entryOf(shown, pulls, pull);
    const { text } = entry;
    await writePull(context, first.object, entry, pull, content);
    hasText = text === entry.text;
    for (const { key } of members) if (shown.get(key)?.pull !== entry) enqueue(key);
    // Their conditions are part of what is merged: the branch gets all of them at once, and checks only then.
    if (waitsForReviews(entry, members, clock.now())) return { isWritten: !hasText, wait: SOON_MS };
  }
  if (before === undefined) {
    // Another process can have opened it, and a user can have merged that, since the pull requests were read.
    const there = await pulls.forge.find(branch, pulls.base, signal);
    if (there !== undefined && pulls.note(there)) {
      for (const { key } of members) enqueue(key);
      return { isWritten: false, wait: SOON_MS };
    }
  }
  const { head, isPushed, isUpToDate, foreign } = await updateBatchBranch(repository, branch, members, signal);
  if (isPushed) pulls.notePush(branch);
  if (pull === undefined || before === undefined) pull = await openPull(context, members, pulls, content);
  else
    for (const { object, proposal } of members)
      if (!before.includes(proposal))
        events.record(object, 'Normal', 'PullRequestOpened', `it is reviewed in ${pull.url}`, 'opened');
  const about = { object: first.object, pull, forge: pulls.forge };
  if (foreign !== undefined) {
    const text = `The commit ${inlineCode(foreign.commit)} of ${inlineCode(foreign.by)} was taken back: this branch has what its packages propose, and Sluice writes it. Push to the branch of the package, or change a draft.`;
    await writeComment(context, about, 'pushed', text);
  }
  const entry = entryOf(shown, pulls, pull);
  const executed = new Map(entry.executed);
  for (const { name, commands } of members)
    if (commands?.source === pull.url)
      for (const one of commands.entries) executed.set(`${one.id} ${name}`, { name, executed: one });
  await writePull(context, first.object, entry, (await pulls.ofBranch(branch, signal)) ?? pull, content);
  const reply = executed.size === 0 ? undefined : describeSharedCommands([...executed.values()]);
  if (reply !== undefined && reply !== entry.reply && (await writeComment(context, about, REPLY, reply)))
    entry.reply = reply;
  const hadChecks = entry.checks;
  const isNew = !entry.heads.has(head);
  entry.heads.add(head);
  // If the host does not show the head yet, a poll wakes them when it does.
  const isNewlyShown = isNew && (await pulls.ofBranch(branch, signal))?.head.commit === head;
  for (const { key } of members) if (isNewlyShown || shown.get(key)?.pull !== entry) enqueue(key);
  if (before === undefined && waitsForReviews(entry, members, clock.now())) return { isWritten: false, wait: SOON_MS };
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
  const facts = { isReady, isUpToDate, isQueued: (entry.queued ?? []).length > 0, isOpen: true };
  const heads = `${head} ${repository.index.mainHead}`;
  const rebuild = await readRebuild({ clock, signal }, facts, heads, entry);
  if (rebuild === 'rebuild') {
    const rebuilt = await updateBatchBranch(repository, branch, members, signal, { rebase: true });
    entry.heads.add(rebuilt.head);
    pulls.notePush(branch);
    return { isWritten: true, wait: SOON_MS };
  }
  return {
    isWritten: isPushed || !hasText || hadChecks !== entry.checks,
    wait: rebuild?.requeueAfter,
  };
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
  const entry = shown.pullOf(pulls, pull.head.branch, pull.number);
  entry.isPrepared ??= isPreparedIn(pull.body);
  return entry;
}

/**
 * No policy has its packages reviewed any more, which its text says. It stays open: one that is closed would reject them as soon as a policy
 * has them reviewed again.
 */
export async function releaseBatch(
  pulls: PullRequests,
  pull: PullRequest,
  proposals: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const body = withSection(pull.body, proposals, RELEASED);
  if (body !== pull.body) pulls.note(await pulls.forge.update(pull.number, { body }, signal));
}

/** None of its packages is proposed any more: the pull request says what became of them, and its branch is removed. */
export async function finishBatch(
  { store, signal }: Pick<BatchContext, 'signal' | 'store'>,
  pulls: PullRequests,
  repository: PackageRepository,
  pull: PullRequest,
): Promise<void> {
  const { branch, commit } = pull.head;
  const members = (await membersAt(repository.git, commit)) ?? [];
  const ended = members.map(({ name }) => ({
    name,
    revision: store.find(keyText({ namespace: repository.namespace, name })),
  }));
  const marked = proposalsIn(pull.body);
  const proposals = marked.length > 0 ? marked : members.map(({ proposal }) => proposal);
  const body = proposals.length === 0 ? pull.body : withSection(pull.body, proposals, describeBatchEnd(ended));
  const change = pull.state === 'open' ? { body, state: 'closed' as const } : { body };
  try {
    await pulls.forge.update(pull.number, change, signal);
  } catch (error) {
    // What only an operator can change does not matter any more.
    if (pauseAfter(error) === undefined) throw error;
  }
  await removeBatchBranch(repository, branch, signal);
}
