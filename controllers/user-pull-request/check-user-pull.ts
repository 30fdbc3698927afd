import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import type { PullRequest } from '../../src/forge/forge.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import { keyOf, type Stored } from '../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../event-deduplicator.ts';
import { waitLeft } from '../pull-request/commands/edited-comments.ts';
import { reviewedBranchAt } from '../pull-request/own-branch.ts';
import { isGone } from '../pull-request/reading/deleted-pulls.ts';
import type { Asking } from '../pull-request/reviews/asked-rights.ts';
import { REREAD_MS } from '../pull-request/reviews/withdraw-reviews.ts';
import type { MayApprove, MayCreate } from '../pull-request/rights.ts';
import type { SyncRequests } from '../repository/sync-requests.ts';
import { workspaceOf } from './adoption/adopt.ts';
import { adoptTopic, applyAdoption } from './adoption/apply-adoption.ts';
import { commentsOf } from './commands/comments.ts';
import { takeRerunRequest } from './commands/rerun-requests.ts';
import { replyToUnknownCommand } from './commands/unknown-commands.ts';
import { describeUserPull, type JudgedPull, type PulledPackage, userChecks } from './describe-user-pull.ts';
import { type ForkRenderings, forkRenderer } from './judging/fork-renderer.ts';
import { draftOf, headOf } from './judging/read-user-pull.ts';
import type { OpenedHost } from './opened-host.ts';
import { reportQueued } from './queued-commits.ts';
import type { UserPulls } from './reading/user-pulls.ts';
import { readRegistrations } from './registrations/read-registrations.ts';
import type { Registration } from './registrations/registrations.ts';
import { type CheckedBase, type SharedHeads, uncheckedWithHead } from './shared-heads.ts';

export interface CheckContext {
  readonly store: Pick<RevisionStore, 'find' | 'change' | 'repositories'>;
  readonly clock: Clock;
  readonly events: EventDeduplicator;
  readonly renderer: Renderer | undefined;
  readonly restrictedRenderer: Renderer | undefined;
  readonly renderings: ForkRenderings;
  readonly mayCreate: MayCreate | undefined;
  readonly mayApprove: MayApprove | undefined;
  readonly requests: Pick<SyncRequests, 'isAsWritten'> | undefined;
  /** What the result depends on. */
  readonly asking: Asking;
  readonly heads: SharedHeads;
  /** Its rules change before the next poll, which was planned without them. */
  planPoll(): void;
  /** Has a pull request checked again. */
  wake(): void;
  readonly signal: AbortSignal;
}

/** An open pull request, and where the packages are that it may change. */
export interface CheckedPull {
  readonly object: Stored<Repository>;
  /** That whose host is used. */
  readonly repository: PackageRepository;
  readonly host: OpenedHost;
  readonly registrations: readonly Registration[];
  /** Identity of the Git repository. */
  readonly git: string;
  /** All branches of it whose pull requests are checked. */
  readonly bases: readonly CheckedBase[];
}

/** Until a head is looked for again that moved on meanwhile, or that another Repository has not fetched; each time twice as long. */
const UNFETCHED_MS = 2500;
const MAX_UNFETCHED_MS = 600_000;
/** Until a head is checked that was the one of a proposal, whose end wakes nothing. */
const PROPOSAL_MS = 300_000;
/** Until a pull request is looked for again that the host does not find. */
const GONE_MS = 60_000;
const COMMENT_TOPIC = 'packages';

/** Judges the packages of a pull request in all Repositories of its branch, carries out its commands, and reports all by one check and one comment. */
export async function checkUserPull(
  context: CheckContext,
  { object, repository, host, registrations, git, bases }: CheckedPull,
  number: number,
): Promise<ReconcileResult | undefined> {
  const { store, events, clock, signal, asking, heads } = context;
  const { mainHead } = repository.index;
  const { pulls } = host;
  if (mainHead === undefined) return undefined;
  const place = { git, base: repository.layout.branch, number };
  const end = async (head: string | undefined) => {
    heads.leave(place, head);
    events.forgetTopic(keyOf(object), adoptTopic(number));
    for (const one of registrations) await one.repository?.untracked.forgetPull(number);
    return undefined;
  };
  const pull = await getUnlessGone(pulls, number, signal);
  if (pull === 'soon') return { requeueAfter: GONE_MS, reason: 'the host does not find it' };
  if (pull === 'gone') return end(pulls.drop(number));
  const { isSameRepository } = pull.head;
  const shown = { ...place, owner: repository.id, isSameRepository };
  const leave = async () => {
    pulls.leave(pull);
    return end(pull.head.commit);
  };
  if (pull.state !== 'open' || !(await pulls.isOfUser(pull, signal))) return leave();
  const reviews = registrations.flatMap((one) => one.reviews);
  const comments = commentsOf(pulls.forge, pull, clock.now(), signal);
  const written = pulls.writtenOf(number);
  if (pull.hasComments === false) written.isSearched = true;
  await takeRerunRequest(comments, reviews, written);
  await replyToUnknownCommand({ forge: pulls.forge, number }, comments, reviews, written, signal);
  const head = await headOf(repository, pull, signal);
  if (head === undefined)
    return { requeueAfter: waitForHead(pulls, pull), reason: 'its head is not the one that the host reported' };
  // What was fetched for it may show that it is a proposal.
  if (!(await pulls.isOfUser(pull))) return leave();
  const workspace = workspaceOf(number);
  const teamsOf = (review: ReviewPolicy, namespace: string) => asking.teams(host.teamsOf(review, namespace));
  let reviewed: ReturnType<typeof readReviews> | undefined;
  const readPullReviews = () => {
    reviewed ??= readReviews(pulls, number, signal);
    return reviewed;
  };
  const mayApprove = asking.rights(context.mayApprove);
  const knownRights = asking.knownRights(context.mayApprove);
  const shared = {
    ...{ repository, registrations, pull, workspace, head, mainHead, signal, now: clock.now() },
    approvalsIn: (namespace: string) => ({
      ...{ mayApprove, knownRights, signal, readReviews: readPullReviews, unsureMerger: pull.base.unsureMerger },
      teamsOf: (review: ReviewPolicy) => teamsOf(review, namespace),
    }),
    renderer: head.isPushed ? context.renderer : strangers(context, pulls, pull),
  };
  const read = await readRegistrations(shared);
  const { mayCreate, requests } = context;
  const adoption = { store, events, clock, mayCreate, requests, teamsOf: host.teamsOf.bind(host), signal };
  const isDone = await applyAdoption(adoption, { object, registrations, pulls, pull, head, read, comments });
  const packages: PulledPackage[] = [];
  for (const one of read.packages)
    packages.push(isDone ? { ...one, draft: await draftOf({ ...shared, ...one }, one.path) } : one);
  const unchecked = await uncheckedWithHead(
    heads,
    { git, pull, bases, forge: pulls.forge },
    { nowMs: clock.monotonic(), signal },
  );
  const judged = {
    ...{ packages, omitted: read.omitted, unread: read.unread, unchecked: unchecked.map(describeUnchecked) },
    ...{ isRestricted: !head.isPushed, head: head.commit },
  };
  const proposal = await reviewedBranchAt(store, repository, head.commit);
  await report(context, pulls, { ...shown, unchecked: unchecked.map((one) => one.number) }, { ...judged, proposal });
  const rules = packages.flatMap(({ atMerge }) => atMerge ?? []);
  if (pulls.note(number, { head: pull.head.commit, mainHead, onMain: read.onMain, rules })) context.planPoll();
  const isHead = (commit: string) => heads.hasHead({ git, commit });
  await reportQueued(pulls, number, shared, isHead, (merged) => readRegistrations({ ...shared, merged }));
  asking.keep();
  const waits: ReconcileResult[] = [];
  // The arrival of one that is not open wakes all checks of the branch.
  if (proposal !== undefined) waits.push({ requeueAfter: PROPOSAL_MS, reason: 'its head is that of a proposal' });
  if (read.isUnfetched || unchecked.some(({ isSearched }) => isSearched))
    waits.push({ requeueAfter: waitForHead(pulls, pull), reason: 'a Repository has not its head' });
  else delete written.unfetched;
  const { awaited } = written;
  const waitMs = awaited === undefined ? undefined : waitLeft(awaited, clock.monotonic());
  if (waitMs !== undefined) waits.push({ requeueAfter: waitMs, reason: 'the webhook of a comment may still arrive' });
  const mayEnd = !pulls.forge.batchesReads && (await reviewed)?.some(({ state }) => state !== 'dismissed') === true;
  if (mayEnd) waits.push({ requeueAfter: REREAD_MS, reason: 'a review that counts may be deleted' });
  return soonest(waits);
}

/** `gone`: it was deleted on the host; `soon`: that is looked at once more, since a host may work badly for a moment. */
async function getUnlessGone(
  pulls: UserPulls,
  number: number,
  signal: AbortSignal,
): Promise<PullRequest | 'gone' | 'soon'> {
  const written = pulls.writtenOf(number);
  try {
    const pull = await pulls.forge.get(number, signal);
    delete written.isGone;
    return pull;
  } catch (error) {
    if (!isSluiceError(error, 'NotFound') || !(await isGone(pulls.forge, number, signal))) throw error;
    if (written.isGone === true) return 'gone';
    written.isGone = true;
    return 'soon';
  }
}

function soonest(waits: readonly ReconcileResult[]): ReconcileResult | undefined {
  return waits.toSorted((a, b) => (a.requeueAfter ?? 0) - (b.requeueAfter ?? 0))[0];
}

/** Each check costs requests to the host, and what was not fetched may never be. */
function waitForHead(pulls: UserPulls, { number, head }: PullRequest): number {
  const written = pulls.writtenOf(number);
  const { unfetched: last } = written;
  const waitMs = last?.head === head.commit ? Math.min(2 * last.waitMs, MAX_UNFETCHED_MS) : UNFETCHED_MS;
  written.unfetched = { head: head.commit, waitMs };
  return waitMs;
}

function strangers(
  { restrictedRenderer: renderer, clock, renderings }: CheckContext,
  pulls: UserPulls,
  { number, head: { commit: head } }: PullRequest,
): Renderer | undefined {
  if (renderer === undefined) return undefined;
  return forkRenderer(renderer, { clock, head, memory: pulls.writtenOf(number), renderings });
}

async function report(
  { heads, wake, signal }: CheckContext,
  pulls: UserPulls,
  shown: Omit<Parameters<SharedHeads['write']>[0], 'commit' | 'checks' | 'wake'>,
  judged: JudgedPull,
): Promise<void> {
  const { packages, omitted, unread, head: commit, proposal } = judged;
  const { number } = shown;
  const written = pulls.writtenOf(number);
  // Its commit has the checks of the proposal.
  if (proposal !== undefined) {
    heads.leave(shown);
    heads.discard({ ...shown, commit });
  } else {
    const entry = { ...shown, commit, checks: userChecks(judged), wake };
    await heads.write(entry, written.checks !== commit, (checks) => pulls.forge.setChecks(commit, checks, signal));
    written.checks = commit;
  }
  // A pull request without packages gets its check, which may be a required one, and no comment.
  const isEmpty = packages.length === 0 && omitted.length === 0 && unread.length === 0;
  if (isEmpty && written.comment === undefined && written.isSearched !== true) {
    // An earlier process may have written one.
    if ((await pulls.forge.findComment(number, COMMENT_TOPIC, signal)) !== undefined) written.comment = '';
    written.isSearched = true;
  }
  if (isEmpty && written.comment === undefined) return;
  const text = describeUserPull(judged);
  if (written.comment === text) return;
  // A failure can follow the effect.
  written.comment = '';
  await pulls.forge.setComment(number, COMMENT_TOPIC, text, signal);
  written.comment = text;
}

function describeUnchecked({ base, number }: { readonly base: string; readonly number: number }): string {
  return `The pull request #${number} to ${base} has the same head, and is not checked yet`;
}

/** Undefined if there are too many of them, which closes the gate for them, as it does at the merge. */
async function readReviews({ forge }: UserPulls, number: number, signal: AbortSignal) {
  try {
    return await forge.reviews(number, signal);
  } catch (error) {
    if (!isSluiceError(error, 'LimitExceeded')) throw error;
    return undefined;
  }
}
