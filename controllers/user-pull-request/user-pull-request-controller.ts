import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import { specOrMetadataChanged } from '../../src/controller/predicates.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { toObject, triggerSource, watchKind } from '../../src/controller/source.ts';
import type { PullRequest } from '../../src/forge/forge.ts';
import { LruCache } from '../../src/foundation/lru-cache.ts';
import { messageOf } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { REVIEW_ACTOR, type ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type Repository, repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { authorshipOf, waitFor, waitLeft } from '../pull-request/commands/edited-comments.ts';
import {
  forgetMergePublication,
  mergePublicationOf,
  recordMergePublication,
} from '../pull-request/merging/merge-publication.ts';
import type { OpenForge } from '../pull-request/opened-repositories.ts';
import { pauseAfter } from '../pull-request/pause-after.ts';
import { PollPace } from '../pull-request/poll-pace.ts';
import { isOwnBranch } from '../pull-request/pull-requests.ts';
import type { MayApprove, MayCreate } from '../pull-request/rights.ts';
import { inlineCode, plainLine } from '../pull-request/text/quote.ts';
import type { SyncRequests } from '../repository/sync-requests.ts';
import { type AdoptRequest, adoptPackages, adoptRequestsIn, authorizeAdoption, workspaceOf } from './adopt.ts';
import { checkLimits, MAX_CONCURRENT, MERGED } from './check-limits.ts';
import { describeUserPull, type JudgedPull, userChecks } from './describe-user-pull.ts';
import { type Exhausted, type ForkRenderings, forkRenderer } from './fork-renderer.ts';
import { applyUserMerges } from './merges/apply-user-merges.ts';
import { headOf, keyAt, type PulledHead, type PulledPackages, readPulledPackages } from './read-user-pull.ts';
import { UserPulls } from './user-pulls.ts';

export interface UserPullRequestOptions {
  readonly client: Client;
  readonly store: Pick<
    RevisionStore,
    'find' | 'change' | 'findRepository' | 'onArrival' | 'onPromotion' | 'publishMerged'
  >;
  readonly clock: Clock;
  readonly openForge: OpenForge;
  /** The policies of one repository that review proposals, as they are now. */
  reviewsOf(repository: Stored<Repository>): readonly ReviewPolicy[] | Promise<readonly ReviewPolicy[]>;
  /** Runs the pipelines of branches that users pushed to the repository. */
  readonly renderer: Renderer | undefined;
  /** Runs those of others: built-in functions alone. */
  readonly restrictedRenderer: Renderer | undefined;
  /** Undefined where no API is served, so that no rights are granted: then the mapping of the policy decides alone. */
  readonly mayCreate: MayCreate | undefined;
  /** The same for approvals, which merges and reviews are. */
  readonly mayApprove: MayApprove | undefined;
  /** Wakes for what webhooks report of a repository, and syncs one. Default: none. */
  readonly requests?: Pick<SyncRequests, 'subscribe' | 'add' | 'takeReview' | 'isAsWritten'> | undefined;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

/** Between two polls of a repository, without messages. */
const POLL_MS = 30_000;
/** While a repository is not open. */
const OPENING_MS = 5000;
/** Until policies are read again that change at this moment. */
const BEGIN_MS = 1000;
/** Until the head of a pull request is read again that moved on meanwhile. */
const MOVED_MS = 2000;
/** A comment with a command counts so long. */
const COMMAND_AGE_MS = 60 * 60_000;
/** Requests for the adoption of one pull request that are checked. */
const MAX_REQUESTS = 20;
const MAX_COMMENTS = 200;
/** Of renderings of packages from forks that are kept, about. */
const MAX_RENDERED_BYTES = 16 * 1024 * 1024;
const COMMENT_TOPIC = 'packages';
const ADOPT_TOPIC = 'adopt';

/** Checks the packages of pull requests that users open, and adopts them as drafts where an authorised user requests it. */
export function userPullRequestController(options: UserPullRequestOptions): ControllerOptions {
  const { store, clock, openForge } = options;
  const client = options.client.as({ name: REVIEW_ACTOR }, 'controller');
  const events = new EventDeduplicator(
    options.recorder ?? new EventRecorder({ client, clock, component: REVIEW_ACTOR }),
  );
  /** By repository, then by the host that its policies name. */
  const opened = new Map<string, Map<string, UserPulls>>();
  const pace = new PollPace(clock, POLL_MS);
  const renderings: ForkRenderings = new LruCache({ maxSize: MAX_RENDERED_BYTES });
  /** Repositories of which a webhook has reported something. */
  const woken = new Set<string>();
  let enqueue: (key: ObjectKey) => void = () => undefined;
  const toKey = (id: string): ObjectKey => ({
    namespace: id.split('/', 1)[0] ?? '',
    name: id.slice(id.indexOf('/') + 1),
  });

  return {
    name: 'user-pull-request',
    sources: [
      watchKind(repositoryKind, { predicate: specOrMetadataChanged, map: toObject }),
      {
        start({ informer }) {
          const repositories = informer(repositoryKind);
          return informer(packagePolicyKind).addHandler((event) => {
            if (!specOrMetadataChanged(event)) return;
            const { namespace } = event.object.metadata;
            for (const { metadata } of repositories.list()) if (metadata.namespace === namespace) enqueue(metadata);
          });
        },
      },
      triggerSource((queue) => {
        enqueue = ({ namespace = DEFAULT_NAMESPACE, name }) => queue({ namespace, name });
        store.onArrival((id) => enqueue(toKey(id)));
        const wake = (key: ObjectKey) => {
          woken.add(keyText(key));
          enqueue(key);
        };
        const ends = [store.onPromotion((id) => enqueue(toKey(id))), options.requests?.subscribe(wake)];
        return () => {
          for (const end of ends) end?.();
        };
      }),
    ],
    maxConcurrentReconciles: MAX_CONCURRENT,
    namespaceShare: { most: 3, mostFailing: 1 },
    limitsOf: checkLimits,
    reconcileTimeoutMs: 300_000,
    maxDelayMs: 300_000,
    // The name of a repository is a DNS label, without dots.
    reconcile: async ({ namespace = DEFAULT_NAMESPACE, name }, { signal }) => {
      const [repository = '', number] = name.split('.');
      const key = { namespace, name: repository };
      const object = await client.find(repositoryKind, key, { signal });
      try {
        if (number === undefined) return await poll(key, object, signal);
        if (number === MERGED) return await applyMerges(key, object, signal);
        return await check(key, object, Number(number), signal);
      } catch (error) {
        const pause = pauseAfter(error);
        if (pause === undefined || object === undefined) throw error;
        events.record(object, 'Warning', 'PullRequestsNotChecked', messageOf(error), name);
        return { requeueAfter: pause, reason: messageOf(error) };
      }
    },
  };

  /** Reads which pull requests have changed, and wakes for each. */
  async function poll(
    key: ObjectKey,
    object: Stored<Repository> | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const id = keyText(key);
    const repository = store.findRepository(id);
    const reviews = object === undefined || repository?.follows === true ? [] : await options.reviewsOf(object);
    const wanted = new Map(reviews.filter(isChecked).map((review) => [hostOf(repository, review), review]));
    if (object === undefined) await forgetMergePublication(client, key, signal);
    const here = opened.get(id) ?? new Map<string, UserPulls>();
    for (const [host, pulls] of here) {
      if (repository !== undefined && wanted.has(host)) continue;
      here.delete(host);
      await pulls.forge.close();
    }
    if (repository !== undefined)
      for (const review of reviews) await recordMergePublication(client, repository, review, signal);
    if (wanted.size === 0) {
      opened.delete(id);
      pace.rest(id);
      return undefined;
    }
    if (repository === undefined) return { requeueAfter: OPENING_MS, reason: 'the repository is not open' };
    opened.set(id, here);
    const readsHost = isToRead(key);
    const began = clock.now();
    let isChanged = false;
    for (const [host, review] of wanted) {
      const pulls =
        here.get(host) ??
        new UserPulls(openForge(review, repository.namespace, repository.url), repository.layout.branch);
      here.set(host, pulls);
      const own = reviews.filter((one) => hostOf(repository, one) === host);
      const policies = JSON.stringify(reviews.map(({ mergesSince: _since, ...rest }) => rest));
      const watched = { repository, policies, mergedSince: mergedSince(own), readsHost };
      const changed = await pulls.poll(watched, signal);
      isChanged ||= pulls.hasChanged;
      for (const number of changed) enqueue({ namespace: repository.namespace, name: `${key.name}.${number}` });
      if (pulls.merged().length > 0) enqueue({ namespace: repository.namespace, name: `${key.name}.${MERGED}` });
    }
    if (readsHost) pace.notePoll(id, { tookMs: clock.now() - began, isChanged });
    return { requeueAfter: pace.dueMs(id, false), reason: 'pull requests are read' };
  }

  /** Whether the host may have something new: it is time, or a message reported more than the proposals of Sluice. */
  function isToRead(key: ObjectKey): boolean {
    const id = keyText(key);
    const isWoken = woken.delete(id) && !pace.isReported(id);
    const reported = [...(options.requests?.takeReview(key, 'users')?.pulls.values() ?? [])];
    if (reported.length > 0) pace.noteMessage(id);
    const isNews = reported.some(({ head }) => head === undefined || !isOwnBranch(head.branch));
    return isWoken || isNews || pace.dueMs(id, false) === 0;
  }

  /** Publishes what was merged since. One reconciliation for all of a repository, since their order counts. */
  async function applyMerges(
    key: ObjectKey,
    object: Stored<Repository> | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const repository = store.findRepository(keyText(key));
    if (object === undefined || repository === undefined || repository.follows) return undefined;
    /** By policy. */
    const begun = new Map<string, ReviewPolicy['mergesSince']>();
    for (const review of await options.reviewsOf(object)) {
      if (review.publishOn === 'approval') continue;
      const since = review.mergesSince ?? (await mergePublicationOf(client, repository, review, signal));
      if (since === undefined) return { requeueAfter: BEGIN_MS, reason: 'the policies have to be read again' };
      begun.set(review.policy, since);
    }
    for (const [host, pulls] of opened.get(keyText(key)) ?? []) {
      const isWanted = (review: ReviewPolicy) => isChecked(review) && hostOf(repository, review) === host;
      const mergesSince = ({ policy }: ReviewPolicy) => begun.get(policy);
      const { mayApprove, renderer, restrictedRenderer, requests } = options;
      const rights = { mayApprove, renderer, restrictedRenderer, requests };
      const context = {
        client,
        store,
        events,
        clock,
        object,
        repository,
        forge: pulls.forge,
        isWanted,
        mergesSince,
        signal,
      };
      const later = await applyUserMerges({ ...context, ...rights }, pulls);
      if (later !== undefined) return later;
    }
    return undefined;
  }

  async function check(
    key: ObjectKey,
    object: Stored<Repository> | undefined,
    number: number,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const repository = store.findRepository(keyText(key));
    const mainHead = repository?.index.mainHead;
    if (object === undefined || repository === undefined || mainHead === undefined) return undefined;
    for (const [host, pulls] of opened.get(keyText(key)) ?? []) {
      if (!pulls.has(number)) continue;
      const pull = await pulls.forge.get(number, signal);
      if (pull.state !== 'open') {
        pulls.forget(number);
        events.forgetTopic(key, adoptTopic(number));
        await repository.forgetPull(number);
        continue;
      }
      if (!pulls.isOfUser(pull)) continue;
      const head = await headOf(repository, pull, signal);
      if (head === undefined)
        return { requeueAfter: MOVED_MS, reason: 'its head is not the one that the host reported' };
      const workspace = workspaceOf(number);
      const read = await readPulledPackages({
        ...{ repository, workspace, head, mainHead, signal, now: clock.now() },
        renderer: head.isPushed ? options.renderer : strangers(pulls.writtenOf(number), pull.head.commit),
        isWanted: (review) => isChecked(review) && hostOf(repository, review) === host,
      });
      const isAdopted = await adopt({ object, repository, pulls, pull, head, read }, signal);
      const packages = isAdopted ? withDrafts(repository, workspace, read.packages) : read.packages;
      await report(pulls, pull, head, { ...read, packages }, signal);
      pulls.note(number, { head: pull.head.commit, mainHead, onMain: read.onMain });
      const { awaited } = pulls.writtenOf(number);
      const waitMs = awaited === undefined ? undefined : waitLeft(awaited, clock.now());
      if (waitMs !== undefined) return { requeueAfter: waitMs, reason: 'the webhook of a comment may still arrive' };
    }
    return undefined;
  }

  function strangers(memory: { exhausted?: Exhausted }, head: string): Renderer | undefined {
    const { restrictedRenderer: renderer } = options;
    return renderer === undefined ? undefined : forkRenderer(renderer, { clock, head, memory, renderings });
  }

  async function report(
    pulls: UserPulls,
    { number }: PullRequest,
    { commit, isPushed }: PulledHead,
    { packages, omitted, review }: PulledPackages,
    signal: AbortSignal,
  ): Promise<void> {
    const judged: JudgedPull = {
      ...{ packages, omitted, isRestricted: !isPushed, head: commit, gateChecks: review?.gateChecks ?? [] },
      mayAdopt: (review?.approvers.length ?? 0) > 0,
    };
    const written = pulls.writtenOf(number);
    const checks = userChecks(judged);
    const checksText = JSON.stringify([commit, checks]);
    if (written.checks !== checksText) {
      await pulls.forge.setChecks(commit, checks, signal);
      written.checks = checksText;
    }
    // A pull request without packages gets its check, which may be a required one, and no comment.
    if (packages.length === 0 && omitted.length === 0 && written.comment === undefined) return;
    const text = describeUserPull(judged);
    if (written.comment === text) return;
    await pulls.forge.setComment(number, COMMENT_TOPIC, text, signal);
    written.comment = text;
  }

  /** Returns whether drafts of the pull request were requested. */
  async function adopt(
    { object, repository, pulls, pull, head, read }: Adoptable,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { review, packages } = read;
    const wanted = packages.filter(({ judged }) => judged !== undefined);
    if (review === undefined || wanted.length === 0) return false;
    const isAutomatic = review.userPullRequests === 'adopt' && head.isPushed;
    const names = wanted.map(({ path }) => keyAt({ repository, workspace: '' }, path).package);
    const by = { store, repository, pull, packages: names };
    const reason = `adopted from ${pull.url}`;
    if (isAutomatic) {
      if (wanted.every(({ draft }) => draft !== undefined)) return true;
      const context = { actor: { name: REVIEW_ACTOR }, face: 'controller', reason, signal } as const;
      return reply(await adoptPackages({ ...by, context }));
    }
    if (review.approvers.length === 0) return false;
    const since = new Date(Date.parse(pull.updatedAt) - COMMAND_AGE_MS).toISOString();
    const comments = await pulls.forge.comments(pull.number, since, MAX_COMMENTS, signal);
    const requests = adoptRequestsIn(comments);
    const [last] = requests;
    if (last === undefined || pulls.writtenOf(pull.number).handled === last.url) return false;
    const about = { review, isRestricted: !head.isPushed, namespace: repository.namespace };
    const memory = pulls.writtenOf(pull.number);
    const source = { forge: pulls.forge, requests: options.requests, repository: keyOf(object) };
    let isAwaited = false;
    const decide = async (one: AdoptRequest) => {
      const decided = await authorizeAdoption(pulls.forge, one, pull, about, options.mayCreate, signal);
      if ('refusal' in decided) return decided;
      const authorship = await authorshipOf(one.comment, source, signal);
      if (authorship === 'edited') return { refusal: 'it was edited; write it again' };
      // Without a webhook it counts: a user who may edit comments of others may push drafts too.
      isAwaited = authorship === 'unknown' && waitFor(memory, one.comment, clock.now()) !== undefined;
      return decided;
    };
    let request = last;
    let authorized = await decide(last);
    // One that does not count must not hide an earlier one that does.
    for (const earlier of requests.slice(1, MAX_REQUESTS)) {
      if ('actor' in authorized) break;
      const other = await decide(earlier);
      if ('actor' in other) [request, authorized] = [earlier, other];
    }
    if (isAwaited) return false;
    delete memory.awaited;
    let isDone = false;
    if ('refusal' in authorized) {
      const message = `the request ${request.url} of ${plainLine(request.author, 100)} to adopt ${pull.url} does not count: ${authorized.refusal}`;
      events.record(object, 'Warning', 'NotAdopted', message, adoptTopic(pull.number));
      await reply([
        `The request of ${inlineCode(request.author)} does not count: ${inlineCode(authorized.refusal, 500)}`,
      ]);
    } else {
      const { actor } = authorized;
      const context = { actor, face: 'api', reason: `${reason} by ${request.url}`, signal } as const;
      isDone = await reply(await adoptPackages({ ...by, context }));
    }
    memory.handled = last.url;
    return isDone;

    async function reply(problems: readonly string[]): Promise<boolean> {
      const text = problems.length === 0 ? 'The packages are adopted as drafts.' : problems.slice(0, 20).join('\n\n');
      await pulls.forge.setComment(pull.number, ADOPT_TOPIC, text, signal);
      return true;
    }
  }
}

interface Adoptable {
  readonly object: Stored<Repository>;
  readonly repository: PackageRepository;
  readonly pulls: UserPulls;
  readonly pull: PullRequest;
  readonly head: PulledHead;
  readonly read: PulledPackages;
}

function isChecked({ userPullRequests }: ReviewPolicy): boolean {
  return userPullRequests !== 'ignore';
}

/** The repository on the host of a policy. */
function hostOf(
  repository: Pick<PackageRepository, 'url' | 'layout'> | undefined,
  { forge, teams = [] }: ReviewPolicy,
): string {
  return JSON.stringify([repository?.url, repository?.layout.branch, forge, teams.length > 0]);
}

/** Since when merges publish: what was merged before the first policy for that is none of it. Undefined if none of them lets merges publish. */
function mergedSince(reviews: readonly ReviewPolicy[]): string | undefined {
  return reviews
    .filter((review) => isChecked(review) && review.publishOn !== 'approval')
    .flatMap(({ createdAt }) => createdAt ?? [])
    .sort()[0];
}

/** The topic of events about the adoption of a pull request. */
function adoptTopic(number: number): string {
  return `adopt ${number}`;
}

function withDrafts(repository: PackageRepository, workspace: string, packages: PulledPackages['packages']) {
  return packages.map((one) => {
    const { package: name } = keyAt({ repository, workspace }, one.path);
    const draft = repository.index.ofPackage(name).find(({ key }) => key.workspace === workspace)?.name;
    return { ...one, draft };
  });
}
