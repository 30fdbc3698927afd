import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { triggerSource } from '../../src/controller/source.ts';
import type { Check, Forge, ForgeErrorDetails, PullRequest, Review } from '../../src/forge/forge.ts';
import { type ErrorCode, isSluiceError, messageOf, unlessMissing } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { isOid } from '../../src/git/objects/object-id.ts';
import { REVIEW_ACTOR, REVIEWED_TYPE, type ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import { lastRequestOf } from '../../src/package/model/revision/attribution.ts';
import type { Explanation, GateExplanation } from '../../src/package/model/revision/explanation.ts';
import { type PackageRevision as Revision, repositoryIdOf } from '../../src/package/model/revision/package-revision.ts';
import { diffSchema, explainSchema } from '../../src/package/model/revision/revision-readings.ts';
import type { RevisionEvaluation, RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { pendingRevisions } from '../proposal/pending-revisions.ts';
import type { SyncRequests } from '../repository/sync-requests.ts';
import { applyReviews, type ReviewContext, type ReviewedProposal } from './apply-reviews.ts';
import { checksOf } from './checks.ts';
import { describeEnd, describeProposal, titleOf } from './describe-proposal.ts';
import { type MergedPull, publishMerge } from './publish-merge.ts';
import { PullRequests } from './pull-requests.ts';
import { QueuedProposals, setQueuedChecks } from './queued-checks.ts';
import { inlineCode, plainLine } from './quote.ts';
import type { MayApprove } from './rights.ts';
import { proposalId, proposalIn, withSection } from './section.ts';
import { repositoryOf, type Shown, ShownProposals } from './shown-proposals.ts';
import { standingRequests } from './verdicts.ts';

/** Opens the repository of an address on the host of a policy. Rejects with InvalidInput if the host does not have it. */
export type OpenForge = (review: ReviewPolicy, namespace: string, address: string) => Forge;

export interface PullRequestOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'change' | 'evaluate' | 'find' | 'repositoryOf' | 'onPromotion' | 'update'>;
  readonly clock: Clock;
  readonly openForge: OpenForge;
  /** Undefined where no API is served, so that no rights are granted: then the mapping of the policy decides alone. */
  readonly mayApprove: MayApprove | undefined;
  /** Wakes for what webhooks report of a repository, and syncs one. Default: none. */
  readonly requests?: Pick<SyncRequests, 'subscribe' | 'add' | 'takeReview'> | undefined;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

/** Between two polls of a repository with proposals, while there are changes, and once there were none for some minutes. */
const POLL_MS = 10_000;
const QUIET_POLL_MS = 30_000;
/** Until a merge is looked for again in what was fetched. */
const MERGE_FETCH_MS = 1000;
const QUIET_AFTER_MS = 300_000;
/** Only an operator can change what these say; they are tried again now and then. */
const PERMANENT: readonly ErrorCode[] = ['Refused', 'NotFound', 'Unauthenticated', 'InvalidInput', 'Unsupported'];
const PERMANENT_RETRY_MS = 60_000;
const HEADS = 'refs/heads/';
/** Proposals of one repository that report the same failure. */
const MAX_REPORTED = 100;

/** Shows proposals as pull requests of a Git host, and takes over what users decide there. */
export function pullRequestController(options: PullRequestOptions): ControllerOptions {
  const { store, clock, openForge, requests } = options;
  const client = options.client.as({ name: REVIEW_ACTOR }, 'controller');
  const events = new EventDeduplicator(
    options.recorder ?? new EventRecorder({ client, clock, component: REVIEW_ACTOR }),
  );
  const shown = new ShownProposals();
  const queues = new QueuedProposals();
  /** Why the pull requests of a repository cannot be read, as its proposals report it. */
  const unreadable = new Map<string, string>();
  /** By repository, then by its address and branch, and the host of the policy. */
  const opened = new Map<string, Map<string, PullRequests>>();
  /** When a pull request of a repository last changed, in milliseconds since the epoch. */
  const changedAt = new Map<string, number>();
  let enqueue: (key: ObjectKey) => void = () => undefined;

  return {
    name: 'pull-request',
    sources: [
      ...pendingRevisions(store),
      triggerSource((queue) => {
        enqueue = queue;
        return requests?.subscribe(queue) ?? (() => undefined);
      }),
    ],
    maxConcurrentReconciles: 16,
    namespaceShare: { most: 8, mostFailing: 4 },
    reconcileTimeoutMs: 120_000,
    maxDelayMs: 60_000,
    // The name of a repository is a DNS label, that of a revision contains dots.
    reconcile: (key, { signal }) => (key.name.includes('.') ? reconcile(key, signal) : poll(key, signal)),
  };

  async function reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const object = await client.find(packageRevisionKind, key, { signal });
    const before = shown.get(key);
    if (object?.spec.lifecycle !== 'Proposed' || object.metadata.deletionTimestamp !== undefined)
      return end(key, before, object, signal);
    let evaluation: RevisionEvaluation;
    try {
      evaluation = await store.evaluate(keyText(key));
    } catch (error) {
      // Deleted since it was read; its deletion wakes this controller too.
      if (isSluiceError(error, 'NotFound')) return undefined;
      throw error;
    }
    const { review, reviewProblem } = evaluation.policy;
    if (reviewProblem !== undefined) events.record(object, 'Warning', 'PullRequestFailed', reviewProblem);
    if (store.repositoryOf(evaluation.revision).follows || review === undefined) {
      if (reviewProblem === undefined) return end(key, before, object, signal);
      return undefined;
    }
    try {
      return await show(object, evaluation, review, signal);
    } catch (error) {
      return failed(object, error);
    }
  }

  /** Brings the pull request of a proposal up to date, and takes over what was decided there. */
  async function show(
    object: Stored<PackageRevision>,
    evaluation: RevisionEvaluation,
    review: ReviewPolicy,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const { revision, record } = evaluation;
    const key = keyOf(object);
    const pulls = pullsOf(revision, review);
    const branch = revision.ref.startsWith(HEADS) ? revision.ref.slice(HEADS.length) : revision.ref;
    const proposal = proposalId(revision.uid, record.steps);
    let pull = await pulls.ofBranch(branch, signal);
    if (pull !== undefined && pull.state !== 'open') {
      // What a user decided is read again before it has an effect.
      pull = await pulls.forge.get(pull.number, signal);
      pulls.note(pull);
      if (pull.state !== 'open' && proposalIn(pull.body) === proposal) {
        const entry = watch({ key, proposal, branch, pulls, number: pull.number });
        if (pull.state === 'merged' && review.publishOn !== 'merge') {
          // What reviewers request still stands in the way of an approval.
          const proposed = { object, evaluation, review: { ...review, publishOn: 'approval' as const }, pull };
          const read = await reviewsOf(entry, pull, signal);
          await applyReviews(reviewing(signal), { ...proposed, ...read, forge: pulls.forge });
        }
        return ended({ object, evaluation, review, pull }, pulls.forge, signal);
      }
    }
    const explanation = await explain(object, signal);
    const text = await describe(object, revision, { explanation, review }, signal);
    const isOpen = pull?.state === 'open';
    if (pull === undefined || !isOpen) pull = await open(object, revision, pulls, { branch, proposal, text }, signal);
    // Users may remove labels and reviewers that they were given once.
    const isPrepared = isOpen && proposalIn(pull.body) !== undefined;
    const entry = watch({ key, proposal, branch, pulls, number: pull.number, isPrepared });
    const proposed = { object, evaluation, review, pull, forge: pulls.forge };
    if (await applyReviews(reviewing(signal), { ...proposed, ...(await reviewsOf(entry, pull, signal)) }))
      return undefined;
    if (proposalIn(pull.body) === undefined)
      events.record(object, 'Normal', 'PullRequestAdopted', `it is reviewed in ${pull.url}`, 'opened');
    if (entry.text !== text) {
      const body = withSection(pull.body, proposal, text);
      // Hosts return line breaks as they were sent by browsers.
      if (body !== pull.body.replaceAll('\r\n', '\n')) await writeBody(entry, body, signal);
      entry.text = text;
    }
    const checks = checksOf(explanation, review.gateChecks);
    const checksText = checksTextOf(revision.commit, checks);
    if (entry.checks !== checksText) {
      await pulls.forge.setChecks(revision.commit, checks, signal);
      await setQueuedChecks({ store, forge: pulls.forge, signal }, revision, checks, entry.queued ?? []);
      entry.checks = checksText;
    }
    if (entry.isPrepared !== true) {
      await prepare(object, pull, pulls.forge, review, signal);
      entry.isPrepared = true;
    }
    return undefined;
  }

  /** An own change is no reason to read reviews again; the next poll does it for one that came at the same time. */
  async function writeBody(
    { pulls, branch, number, ...entry }: Shown,
    body: string,
    signal: AbortSignal,
  ): Promise<void> {
    pulls.note(await pulls.forge.update(number, { body }, signal));
    const of = await pulls.ofBranch(branch, signal);
    const now = shown.get(entry.key);
    if (of !== undefined && now?.reviews !== undefined) now.reviews = { ...now.reviews, of };
  }

  function reviewing(signal: AbortSignal): ReviewContext {
    const { mayApprove } = options;
    return { client, store, events, mayApprove, signal };
  }

  /** Read only if the pull request has changed since: a revision changes more often than its reviews. */
  async function reviewsOf(
    entry: Shown,
    pull: PullRequest,
    signal: AbortSignal,
  ): Promise<Pick<ReviewedProposal, 'reviews' | 'readReviews'>> {
    const { pulls, branch, number } = entry;
    const readReviews = async () => {
      const earlier: Review[] = [];
      // Users may delete pull requests.
      for (const one of pulls.earlierOf(branch))
        if (one !== number) earlier.push(...((await unlessMissing(pulls.forge.reviews(one, signal))) ?? []));
      return [...standingRequests(earlier), ...(await pulls.forge.reviews(number, signal))];
    };
    const of = (await pulls.ofBranch(branch, signal)) ?? pull;
    if (entry.reviews?.of !== of) entry.reviews = { of, list: await readReviews() };
    return { reviews: entry.reviews.list, readReviews };
  }

  async function open(
    object: Stored<PackageRevision>,
    revision: Revision,
    pulls: PullRequests,
    { branch, proposal, text }: { readonly branch: string; readonly proposal: string; readonly text: string },
    signal: AbortSignal,
  ): Promise<PullRequest> {
    const { package: path, workspace } = revision.key;
    const pull = await pulls.forge.open(
      {
        ...{ head: branch, base: store.repositoryOf(revision).layout.branch },
        title: titleOf({ package: path, workspace }),
        body: withSection('', proposal, text),
      },
      signal,
    );
    pulls.note(pull);
    // The host returns the one that a user opened meanwhile.
    if (proposalIn(pull.body) === proposal)
      events.record(object, 'Normal', 'PullRequestOpened', `it is reviewed in ${pull.url}`, 'opened');
    return pull;
  }

  /** Adds labels and reviewers, once: users may remove them. */
  async function prepare(
    object: Stored<PackageRevision>,
    pull: PullRequest,
    forge: Forge,
    { labels, reviewers }: ReviewPolicy,
    signal: AbortSignal,
  ): Promise<void> {
    await forge.addLabels(pull, labels, signal);
    for (const { name, reason } of await forge.requestReviewers(pull.number, reviewers, signal)) {
      const message = `${pull.url}: the review of ${plainLine(name)} cannot be requested: ${plainLine(reason)}; correct spec.review.reviewers`;
      events.record(object, 'Warning', 'ReviewerRefused', message, `reviewer ${name}`);
    }
  }

  /** A pull request of this proposal has ended on the host: a merge publishes it, if the policy says so; anything else rejects it. */
  async function ended(merged: MergedPull, forge: Forge, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const { object, review, pull } = merged;
    if (pull.state === 'merged' && review.publishOn === 'merge') {
      const { mayApprove } = options;
      const { revision } = merged.evaluation;
      const commit = pull.merged?.commit ?? '';
      // The host reports a merge before it was fetched.
      const [found] = await store
        .repositoryOf(revision)
        .git.statObjects(isOid(commit) ? [`${commit}:${revision.path}`] : []);
      const isFetched = found !== undefined;
      if (isFetched && (await publishMerge({ store, events, mayApprove, signal }, merged))) return undefined;
      requests?.add(repositoryOf(keyOf(object)), 'branches');
      return { requeueAfter: isFetched ? POLL_MS : MERGE_FETCH_MS, reason: 'the main branch has to be read' };
    }
    if (pull.state === 'merged') {
      const by = pull.merged?.by === undefined ? '' : ` by ${plainLine(pull.merged.by)}`;
      const message = `${pull.url} was merged${by} on the host, which publishes nothing; approve the revision to publish it, or revert the merge and reject it`;
      events.record(object, 'Warning', 'MergedOutside', message, 'ended');
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

  /** The proposal has ended: the last state is left in the pull request, which the host closes as the branch is gone. */
  async function end(
    key: ObjectKey,
    before: Shown | undefined,
    object: Stored<PackageRevision> | undefined,
    signal: AbortSignal,
  ): Promise<undefined> {
    if (before === undefined) return;
    try {
      await leave(before, object?.spec.lifecycle ?? 'deleted', signal);
    } catch (error) {
      // What only an operator can change does not matter any more.
      if (pauseAfter(error) === undefined) throw error;
    }
    forget(key, before);
    events.forget(key);
  }

  async function leave({ key, pulls, number, proposal }: Shown, lifecycle: string, signal: AbortSignal): Promise<void> {
    const revision = store.find(keyText(key));
    const last = revision === undefined ? undefined : lastRequestOf(revision);
    const by =
      last === undefined ? '' : `Last step: ${inlineCode(last.action)} by ${inlineCode(last.by)} at ${last.at}.`;
    const pull = await pulls.forge.get(number, signal);
    if (proposalIn(pull.body) !== proposal) return;
    const body = withSection(pull.body, proposal, describeEnd({ name: key.name, lifecycle }, by));
    await pulls.forge.update(number, { body }, signal);
  }

  async function poll(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const here = shown.inRepository(key);
    await closeUnused(key, new Set(here.map(({ pulls }) => pulls)));
    if (here.length === 0) {
      changedAt.delete(keyText(key));
      unreadable.delete(keyText(key));
      return undefined;
    }
    const requested = requests?.takeReview(key);
    for (const one of here) {
      if (![...(requested?.reruns ?? [])].some((commit) => one.checks?.startsWith(checksTextOf(commit)))) continue;
      delete one.checks;
      enqueue(one.key);
    }
    for (const pulls of new Set(here.map((one) => one.pulls))) {
      let branches: readonly string[];
      try {
        branches = await pulls.poll(signal);
        const queued = await queues.read(pulls, here, requested?.mergeQueue === true || branches.length > 0, signal);
        for (const one of queued) enqueue(one.key);
      } catch (error) {
        const pause = pauseAfter(error);
        if (pause === undefined) throw error;
        const own = here.filter((one) => one.pulls === pulls);
        await reportUnreadable(key, own, messageOf(error), signal);
        return { requeueAfter: pause, reason: messageOf(error) };
      }
      unreadable.delete(keyText(key));
      if (branches.length > 0) changedAt.set(keyText(key), clock.now());
      const changed = new Set(branches);
      for (const one of here) if (one.pulls === pulls && changed.has(one.branch)) enqueue(one.key);
    }
    const isQuiet = clock.now() - (changedAt.get(keyText(key)) ?? 0) > QUIET_AFTER_MS;
    return { requeueAfter: isQuiet ? QUIET_POLL_MS : POLL_MS, reason: 'pull requests are read' };
  }

  /** The proposals wait for an operator, which each of them shows; once, however often it is tried again. */
  async function reportUnreadable(repository: ObjectKey, own: readonly Shown[], message: string, signal: AbortSignal) {
    if (unreadable.get(keyText(repository)) === message) return;
    for (const { key } of own.slice(0, MAX_REPORTED)) {
      const object = await client.find(packageRevisionKind, key, { signal });
      if (object !== undefined) events.record(object, 'Warning', 'PullRequestFailed', message, 'failed');
    }
    unreadable.set(keyText(repository), message);
  }

  function watch(entry: Shown): Shown {
    const before = shown.get(entry.key);
    if (before?.proposal === entry.proposal && before.number === entry.number && before.pulls === entry.pulls)
      return before;
    shown.set(entry);
    changedAt.set(keyText(repositoryOf(entry.key)), clock.now());
    enqueue(repositoryOf(entry.key));
    return entry;
  }

  function forget(key: ObjectKey, before: Shown | undefined): void {
    shown.delete(key);
    before?.pulls.forget(before.branch);
  }

  function pullsOf(revision: Revision, review: ReviewPolicy): PullRequests {
    const { url, layout } = store.repositoryOf(revision);
    const ofRepository = opened.get(repositoryIdOf(revision)) ?? new Map<string, PullRequests>();
    opened.set(repositoryIdOf(revision), ofRepository);
    const id = JSON.stringify([url, layout.branch, review.forge]);
    const known = ofRepository.get(id);
    if (known !== undefined) return known;
    const pulls = new PullRequests(openForge(review, revision.namespace, url), layout.branch);
    ofRepository.set(id, pulls);
    return pulls;
  }

  /** Closes what no proposal uses any more: the last one has ended, or the policy names another host. */
  async function closeUnused(repository: ObjectKey, used: ReadonlySet<PullRequests>): Promise<void> {
    const ofRepository = opened.get(keyText(repository));
    for (const [id, pulls] of ofRepository ?? []) {
      if (used.has(pulls)) continue;
      ofRepository?.delete(id);
      await pulls.forge.close();
    }
    if (ofRepository?.size === 0) opened.delete(keyText(repository));
  }

  async function explain(object: Stored<PackageRevision>, signal: AbortSignal) {
    const read = await client.subResource('explain').get(packageRevisionKind, keyOf(object), {}, { signal });
    const { explanation } = explainSchema.parse(read);
    // Reviewers see this gate on the host itself, unless it is closed by one of them.
    const isNews = ({ type, state }: GateExplanation) => type !== REVIEWED_TYPE || state === 'NotTrue';
    return { ...explanation, gates: explanation.gates.filter(isNews) };
  }

  async function describe(
    object: Stored<PackageRevision>,
    { kptfile }: Revision,
    about: { readonly explanation: Explanation; readonly review: ReviewPolicy },
    signal: AbortSignal,
  ): Promise<string> {
    const read = await client.subResource('diff').get(packageRevisionKind, keyOf(object), {}, { signal });
    const git = kptfile?.upstream?.git;
    const upstream = git === undefined ? undefined : `${git.repo ?? ''}/${git.directory ?? ''}@${git.ref ?? ''}`;
    return describeProposal({ ...about, diff: diffSchema.parse(read), upstream });
  }

  /** Reports a failure, except a lost race with another writer. */
  function failed(object: Stored<PackageRevision>, error: unknown): ReconcileResult {
    if (!isSluiceError(error) || ['Conflict', 'Busy'].includes(error.code)) throw error;
    events.record(object, 'Warning', 'PullRequestFailed', messageOf(error), 'failed');
    const key = keyOf(object);
    // Users may delete pull requests: then there is another one the next time.
    if (error.code === 'NotFound') forget(key, shown.get(key));
    const pause = pauseAfter(error);
    if (pause === undefined) throw error;
    return { requeueAfter: pause, reason: messageOf(error) };
  }
}

/** What `Shown.checks` compares; without checks, what it begins with. */
function checksTextOf(commit: string, checks?: readonly Check[]): string {
  return `${commit} ${checks === undefined ? '' : JSON.stringify(checks)}`;
}

/** Milliseconds until the next attempt after a failure that a repetition at once cannot mend; undefined for others. */
function pauseAfter(error: unknown): number | undefined {
  if (!isSluiceError(error)) return undefined;
  if (error.code === 'TooManyRequests')
    return (error.details as ForgeErrorDetails | undefined)?.retryAfterMs ?? PERMANENT_RETRY_MS;
  return PERMANENT.includes(error.code) ? PERMANENT_RETRY_MS : undefined;
}
