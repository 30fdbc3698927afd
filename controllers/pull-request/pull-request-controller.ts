import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { triggerSource } from '../../src/controller/source.ts';
import type { Forge, ForgeErrorDetails, PullRequest } from '../../src/forge/forge.ts';
import { type ErrorCode, isSluiceError, messageOf } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { REVIEW_ACTOR, type ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import { lastRequestOf } from '../../src/package/model/revision/attribution.ts';
import type { Explanation } from '../../src/package/model/revision/explanation.ts';
import { type PackageRevision as Revision, repositoryIdOf } from '../../src/package/model/revision/package-revision.ts';
import { diffSchema, explainSchema } from '../../src/package/model/revision/revision-readings.ts';
import type { RevisionEvaluation, RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { pendingRevisions } from '../proposal/pending-revisions.ts';
import { applyReviews } from './apply-reviews.ts';
import { checksOf } from './checks.ts';
import { describeEnd, describeProposal, titleOf } from './describe-proposal.ts';
import { PullRequests } from './pull-requests.ts';
import { inlineCode, plainLine } from './quote.ts';
import type { MayApprove } from './rights.ts';
import { proposalId, proposalIn, withSection } from './section.ts';

/** Opens the repository of an address on the host of a policy. Rejects with InvalidInput if the host does not have it. */
export type OpenForge = (review: ReviewPolicy, namespace: string, address: string) => Forge;

export interface PullRequestOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'change' | 'evaluate' | 'find' | 'repositoryOf' | 'onPromotion'>;
  readonly clock: Clock;
  readonly openForge: OpenForge;
  /** Undefined where no API is served, so that no rights are granted: then the mapping of the policy decides alone. */
  readonly mayApprove: MayApprove | undefined;
  /** Milliseconds between two polls of a repository with proposals. Default 10,000. */
  readonly pollMs?: number;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

/** A proposal with a pull request. */
interface Shown {
  readonly key: ObjectKey;
  readonly proposal: string;
  readonly branch: string;
  readonly pulls: PullRequests;
  readonly number: number;
  /** What was written last, so that nothing is written twice. */
  text?: string;
  checks?: string;
  isPrepared?: boolean;
}

const POLL_MS = 10_000;
/** Only an operator can change what these say; they are tried again now and then. */
const PERMANENT: readonly ErrorCode[] = ['Refused', 'NotFound', 'Unauthenticated', 'InvalidInput', 'Unsupported'];
const PERMANENT_RETRY_MS = 60_000;
const HEADS = 'refs/heads/';

/** Shows proposals as pull requests of a Git host, and takes over what users decide there. */
export function pullRequestController(options: PullRequestOptions): ControllerOptions {
  const { store, clock, openForge, pollMs = POLL_MS } = options;
  const client = options.client.as({ name: REVIEW_ACTOR }, 'controller');
  const events = new EventDeduplicator(
    options.recorder ?? new EventRecorder({ client, clock, component: REVIEW_ACTOR }),
  );
  const shown = new Map<string, Shown>();
  /** By repository, policy settings and base branch. */
  const opened = new Map<string, PullRequests>();
  let enqueue: (key: ObjectKey) => void = () => undefined;

  return {
    name: 'pull-request',
    sources: [
      ...pendingRevisions(store),
      triggerSource((queue) => {
        enqueue = queue;
        return () => undefined;
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
    const before = shown.get(keyText(key));
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
      forget(key, before);
      if (reviewProblem === undefined) events.forget(key);
      return undefined;
    }
    try {
      await show(object, evaluation, review, signal);
      return undefined;
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
  ): Promise<void> {
    const { revision, record } = evaluation;
    const key = keyOf(object);
    const pulls = pullsOf(revision, review);
    const branch = revision.ref.startsWith(HEADS) ? revision.ref.slice(HEADS.length) : revision.ref;
    const proposal = proposalId(revision.uid, record.steps.findLast(({ action }) => action === 'propose')?.at);
    let pull = await pulls.ofBranch(branch, signal);
    if (pull !== undefined && pull.state !== 'open') {
      // What a user decided is read again before it has an effect.
      pull = await pulls.forge.get(pull.number, signal);
      pulls.note(pull);
      if (pull.state !== 'open' && proposalIn(pull.body) === proposal) {
        watch({ key, proposal, branch, pulls, number: pull.number });
        return ended(object, pull, pulls.forge, signal);
      }
    }
    const explanation = await explain(object, signal);
    const text = await describe(object, revision, { explanation, review }, signal);
    if (pull === undefined || pull.state !== 'open')
      pull = await open(object, revision, pulls, { branch, proposal, text }, signal);
    const entry = watch({ key, proposal, branch, pulls, number: pull.number });
    if (proposalIn(pull.body) === undefined)
      events.record(object, 'Normal', 'PullRequestAdopted', `it is reviewed in ${pull.url}`, 'opened');
    if (entry.text !== text) {
      const body = withSection(pull.body, proposal, text);
      // Hosts return line breaks as they were sent by browsers.
      if (body !== pull.body.replaceAll('\r\n', '\n'))
        pulls.note(await pulls.forge.update(pull.number, { body }, signal));
      entry.text = text;
    }
    const checks = checksOf(explanation, review.gateChecks);
    const checksText = JSON.stringify([revision.commit, checks]);
    if (entry.checks !== checksText) {
      await pulls.forge.setChecks(revision.commit, checks, signal);
      entry.checks = checksText;
    }
    if (entry.isPrepared !== true) {
      await prepare(object, pull, pulls.forge, review, signal);
      entry.isPrepared = true;
    }
    const { mayApprove } = options;
    await applyReviews(
      { client, store, events, mayApprove, signal },
      { object, evaluation, review, pull, forge: pulls.forge },
    );
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

  /** A pull request of this proposal has ended on the host: a merge is reported, anything else rejects the proposal. */
  async function ended(
    object: Stored<PackageRevision>,
    pull: PullRequest,
    forge: Forge,
    signal: AbortSignal,
  ): Promise<void> {
    if (pull.state === 'merged') {
      const by = pull.merged?.by === undefined ? '' : ` by ${plainLine(pull.merged.by)}`;
      const message = `${pull.url} was merged${by} on the host, which publishes nothing; approve the revision to publish it, or revert the merge and reject it`;
      events.record(object, 'Warning', 'MergedOutside', message, 'ended');
      return;
    }
    const closing = await forge.closing(pull, signal);
    const by = closing === undefined ? '' : ` by ${plainLine(closing.by)}`;
    const comment = closing?.comment === undefined ? '' : `: ${plainLine(closing.comment, 500)}`;
    const reason = `${pull.url} was closed${by}${comment}`;
    const rejected = { ...object, spec: { ...object.spec, lifecycle: 'Draft' as const } };
    await client.subResource('approval').update(packageRevisionKind, rejected, { reason, signal });
    events.record(object, 'Normal', 'Rejected', reason, 'ended');
  }

  /** The proposal has ended: the last state is left in the pull request, which the host closes as the branch is gone. */
  async function end(
    key: ObjectKey,
    before: Shown | undefined,
    object: Stored<PackageRevision> | undefined,
    signal: AbortSignal,
  ): Promise<undefined> {
    if (before === undefined) return;
    forget(key, before);
    events.forget(key);
    const { pulls, number, proposal } = before;
    const lifecycle = object?.spec.lifecycle ?? 'deleted';
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
    const here = [...shown.values()].filter(({ key: revision }) => isIn(revision, key));
    if (here.length === 0) return undefined;
    for (const pulls of new Set(here.map((one) => one.pulls))) {
      let branches: readonly string[];
      try {
        branches = await pulls.poll(signal);
      } catch (error) {
        const pause = pauseAfter(error);
        if (pause === undefined) throw error;
        return { requeueAfter: pause, reason: messageOf(error) };
      }
      for (const one of here) if (one.pulls === pulls && branches.includes(one.branch)) enqueue(one.key);
    }
    return { requeueAfter: pollMs, reason: 'pull requests are read' };
  }

  function watch(entry: Shown): Shown {
    const id = keyText(entry.key);
    const before = shown.get(id);
    if (before !== undefined && before.proposal === entry.proposal && before.number === entry.number) return before;
    shown.set(id, entry);
    enqueue(repositoryOf(entry.key));
    return entry;
  }

  function forget(key: ObjectKey, before: Shown | undefined): void {
    shown.delete(keyText(key));
    before?.pulls.forget(before.branch);
  }

  function pullsOf(revision: Revision, review: ReviewPolicy): PullRequests {
    const { url, layout } = store.repositoryOf(revision);
    const id = JSON.stringify([repositoryIdOf(revision), url, layout.branch, review.forge]);
    const known = opened.get(id);
    if (known !== undefined) return known;
    const pulls = new PullRequests(openForge(review, revision.namespace, url), layout.branch);
    opened.set(id, pulls);
    return pulls;
  }

  async function explain(object: Stored<PackageRevision>, signal: AbortSignal) {
    const read = await client.subResource('explain').get(packageRevisionKind, keyOf(object), {}, { signal });
    return explainSchema.parse(read).explanation;
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

  /** Reports a failure; one that passes by itself is tried again. */
  function failed(object: Stored<PackageRevision>, error: unknown): ReconcileResult {
    const pause = pauseAfter(error);
    if (pause === undefined) throw error;
    events.record(object, 'Warning', 'PullRequestFailed', messageOf(error), 'failed');
    return { requeueAfter: pause, reason: messageOf(error) };
  }
}

/** Milliseconds until the next attempt after a failure that a repetition at once cannot mend; undefined for others. */
function pauseAfter(error: unknown): number | undefined {
  if (!isSluiceError(error)) return undefined;
  if (error.code === 'TooManyRequests')
    return (error.details as ForgeErrorDetails | undefined)?.retryAfterMs ?? PERMANENT_RETRY_MS;
  return PERMANENT.includes(error.code) ? PERMANENT_RETRY_MS : undefined;
}

function repositoryOf({ namespace = DEFAULT_NAMESPACE, name }: ObjectKey): ObjectKey {
  return { namespace, name: name.split('.', 1)[0] ?? '' };
}

function isIn(revision: ObjectKey, repository: ObjectKey): boolean {
  return keyText(repositoryOf(revision)) === keyText(repository);
}
