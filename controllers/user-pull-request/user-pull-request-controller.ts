import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import { specOrMetadataChanged } from '../../src/controller/predicates.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { toObject, triggerSource, watchKind } from '../../src/controller/source.ts';
import { pauseAfter } from '../../src/forge/pause-after.ts';
import { PollPace } from '../../src/forge/poll-pace.ts';
import { SharedLists } from '../../src/forge/shared-lists.ts';
import { KeyedMutex } from '../../src/foundation/concurrency/mutex.ts';
import { LruCache } from '../../src/foundation/lru-cache.ts';
import { messageOf } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { canonicalAddress } from '../../src/git/open/repository-address.ts';
import { REVIEW_ACTOR, type ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type Repository, repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { DEFAULT_NAMESPACE, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import type { PolicyScope } from '../proposal/pending-revisions.ts';
import { whenRulesChange } from '../pull-request/checks/unmet-publication.ts';
import { mergePublicationOf, recordMergePublication } from '../pull-request/merged/merge-publication.ts';
import type { OpenForge } from '../pull-request/opened-repositories.ts';
import { ownBranchesOf } from '../pull-request/own-branch.ts';
import { AskedRights, isRightsKey } from '../pull-request/reviews/asked-rights.ts';
import type { MayApprove, MayCreate } from '../pull-request/rights.ts';
import type { ReportedPull, SyncRequests } from '../repository/sync-requests.ts';
import { checkLimits, MAX_CONCURRENT, MERGED } from './check-limits.ts';
import { checkUserPull } from './check-user-pull.ts';
import type { ForkRenderings } from './judging/fork-renderer.ts';
import { isChecked } from './judging/read-user-pull.ts';
import { applyUserMerges } from './merges/apply-user-merges.ts';
import { OpenedHost } from './opened-host.ts';
import type { UserPulls } from './reading/user-pulls.ts';
import { forgetWritten } from './reading/written.ts';
import {
  leadOf,
  otherBranchesOf,
  type Registration,
  type RegistrationReader,
  registrationsAt,
  rulesDigest,
} from './registrations/registrations.ts';
import { ruledRepositories } from './registrations/ruled-repositories.ts';
import { SharedHeads } from './shared-heads.ts';

export interface UserPullRequestOptions {
  readonly client: Client;
  readonly store: Pick<
    RevisionStore,
    'find' | 'change' | 'findRepository' | 'onArrival' | 'onPromotion' | 'publishMerged' | 'repositories'
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
  /** Roles and their bindings are read, so that their changes count at once. Default: the rights are asked for now and then. */
  readonly readsBindings?: boolean;
  /** The registered repositories whose address may be the same as this one. Default: a list of all. */
  readonly registered?: RegistrationReader['registered'];
  /** Wakes for what webhooks report of a repository, and syncs one. Default: none. */
  readonly requests?: Pick<SyncRequests, 'subscribe' | 'addOwn' | 'takeReview' | 'isAsWritten'> | undefined;
  /** Shared with other controllers that read pull requests. Default: its own. */
  readonly lists?: SharedLists;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
  /** Where policies and freezes apply. */
  readonly scope?: PolicyScope;
}

/** Between two polls of a repository, without messages. */
const POLL_MS = 30_000;
/** While a repository is not open. */
const OPENING_MS = 5000;
/** Until policies are read again that change at this moment. */
const BEGIN_MS = 1000;
/** Until more is read of what was merged while no process ran. */
const MISSED_MS = 1000;
/** While a merge that cannot be published holds up others: the time for which it does so is that of its attempts. */
const HELD_MS = 60_000;
/** Of renderings of packages from forks that are kept, about. */
const MAX_RENDERED_BYTES = 16 * 1024 * 1024;

/** Checks the packages of pull requests that users open, and adopts them as drafts where an authorised user requests it. */
export function userPullRequestController(options: UserPullRequestOptions): ControllerOptions {
  const { store, clock, openForge, lists = new SharedLists(options.clock) } = options;
  const client = options.client.as({ name: REVIEW_ACTOR }, 'controller');
  const events = new EventDeduplicator(
    options.recorder ?? new EventRecorder({ client, clock, component: REVIEW_ACTOR }),
  );
  /** By repository. */
  const opened = new Map<string, OpenedHost>();
  const pace = new PollPace(clock, POLL_MS);
  const renderings: ForkRenderings = new LruCache({ maxSize: MAX_RENDERED_BYTES });
  /** Repositories of which a webhook has reported something, and those of them that the host has to be read for. */
  const woken = new Set<string>();
  const unread = new Set<string>();
  let enqueue: (key: ObjectKey) => void = () => undefined;
  /** What the checks of the branch of each Repository depended on last, by its id, and all Repositories of that branch. */
  const known = new Map<string, { readonly rules: string; readonly keys: readonly ObjectKey[] }>();
  const checking = new KeyedMutex();
  const heads = new SharedHeads();
  const rights = new AskedRights(clock, (key) => enqueue({ namespace: DEFAULT_NAMESPACE, ...key }));
  const reader: RegistrationReader = {
    store,
    registered: async (address) => options.registered?.(address) ?? (await client.list(repositoryKind)).items,
    reviewsOf: (object) => options.reviewsOf(object),
  };
  const toKey = (id: string): ObjectKey => ({
    namespace: id.split('/', 1)[0] ?? '',
    name: id.slice(id.indexOf('/') + 1),
  });

  return {
    name: 'user-pull-request',
    sources: [
      ...(options.readsBindings === true ? [rights.source()] : []),
      watchKind(repositoryKind, { predicate: specOrMetadataChanged, map: toObject }),
      ruledRepositories(options.scope),
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
      if (isRightsKey({ name })) return rights.look({ namespace, name }, (one) => enqueue(one), signal);
      const [repository = '', number] = name.split('.');
      const key = { namespace, name: repository };
      const object = await client.find(repositoryKind, key, { signal });
      try {
        if (number === undefined) return await poll(key, object, signal);
        const work = number === MERGED ? applyMerges(key, object, signal) : check(key, object, Number(number), signal);
        const result = await work;
        events.forgetTopic(key, name);
        return result;
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
    const wanted = reviews.filter(isChecked);
    if (object === undefined) events.forget(key);
    const registrations = object === undefined ? [] : await registrationsAt(reader, object);
    wakeOthers(key, registrations);
    if (repository !== undefined)
      for (const review of reviews)
        if (!(await recordMergePublication(client, repository, review, signal)))
          return { requeueAfter: BEGIN_MS, reason: 'the policies have to be read again' };
    if (repository === undefined || wanted.length === 0) {
      await close(id);
      rights.forget(key);
      if (wanted.length > 0) return { requeueAfter: OPENING_MS, reason: 'the repository is not open' };
      pace.rest(id);
      events.forgetTopic(key, key.name);
      return undefined;
    }
    const { pulls } = await hostOf(repository, wanted);
    const taken = options.requests?.takeReview(key, 'users');
    const wakeCheck = (number: number) => enqueue({ namespace: key.namespace, name: `${key.name}.${number}` });
    const began = clock.monotonic();
    const policies = rulesDigest(registrations);
    // Taken once, they have to outlast a failure of what follows.
    for (const number of pulls.rerun(taken?.reruns ?? new Set())) wakeCheck(number);
    if (taken?.mergeQueue === true) pulls.requestQueue();
    const maxAgeMs = await maxAgeOfList(key, pulls, [...(taken?.pulls.values() ?? [])]);
    const findRepository = (of: string) => store.findRepository(of);
    const watched = { repository, findRepository, policies, mergedSince: mergedSince(wanted), maxAgeMs };
    const isFirst = !pulls.hasBegun;
    const { changed, failure } = await pulls.poll(watched, signal);
    for (const number of changed) wakeCheck(number);
    // A merge that is not known yet may be an earlier one.
    if (failure !== undefined) throw failure;
    if (isFirst && object !== undefined)
      await forgetEnded(repository, [pulls, ...(await otherBases(object)).map((one) => one.pulls)]);
    if (pulls.hasMergeWork && !pulls.isReadingMissed)
      enqueue({ namespace: repository.namespace, name: `${key.name}.${MERGED}` });
    for (const number of await pulls.readQueue(signal)) wakeCheck(number);
    if (maxAgeMs !== undefined) {
      unread.delete(id);
      const again = 'the Git host lets Sluice read the pull requests of users again';
      if (object !== undefined) events.recordEnd(object, 'PullRequestsRead', again, key.name);
      const { hasChanged: isChanged, readMs = began } = pulls;
      pace.notePoll(id, pulls, { tookMs: clock.monotonic() - began, isChanged, readMs });
    }
    const requeueAfter = pulls.isReadingMissed
      ? MISSED_MS
      : unread.has(id)
        ? pace.waitMs(pulls)
        : pace.dueMs(id, pulls, false);
    // Each poll tries it again, the backoff of which grows longer.
    const soonest = pulls.isHeldUp ? Math.min(requeueAfter, HELD_MS) : requeueAfter;
    const next = { requeueAfter: soonest, reason: 'pull requests are read' };
    return whenRulesChange({ changesAt: pulls.rulesChangeAt }, clock.now(), next);
  }

  /** All check their pull requests again when the Repositories of the branch, or policies of any of them, have changed. */
  function wakeOthers(key: ObjectKey, registrations: readonly Registration[]): void {
    const id = keyText(key);
    const before = known.get(id);
    const keys = registrations.map((one) => one.key);
    const rules = rulesDigest(registrations);
    if (registrations.length === 0) known.delete(id);
    else known.set(id, { rules, keys });
    if (before?.rules === rules) return;
    const others = new Map([...(before?.keys ?? []), ...keys].map((one) => [keyText(one), one]));
    for (const [other, one] of others) if (other !== id && known.get(other)?.rules !== rules) enqueue(one);
  }

  /** What the policies name now. One that was opened before is closed if it is not that. */
  async function hostOf(repository: PackageRepository, reviews: readonly ReviewPolicy[]): Promise<OpenedHost> {
    const { id } = repository;
    const present = opened.get(id);
    if (present?.isNamedBy(repository, reviews) === true) {
      return present;
    }
    await close(id);
    rights.forget(toKey(id));
    const host = OpenedHost.open(repository, reviews, { openForge, lists, isOwn: ownBranchesOf(store, id) });
    opened.set(id, host);
    return host;
  }

  async function close(id: string): Promise<void> {
    const host = opened.get(id);
    opened.delete(id);
    heads.leaveOwner(id);
    await host?.close();
  }

  /**
   * How old a list of the host may be, in milliseconds: it is time for one, or a message reported more than the proposals of Sluice. Undefined where
   * the host has nothing new, as far as is known, or the last list was read just now.
   */
  async function maxAgeOfList(
    key: ObjectKey,
    list: UserPulls,
    reported: readonly ReportedPull[],
  ): Promise<number | undefined> {
    const id = keyText(key);
    const isWoken = woken.delete(id) && !pace.isReported(id);
    if (reported.length > 0) pace.noteMessage(id);
    const isRead = !isWoken && !unread.has(id);
    // Until it is known that the reported ones are those of proposals.
    if (isWoken || reported.length > 0) unread.add(id);
    if (isRead && (await areProposals(id, reported))) unread.delete(id);
    const isDue = pace.dueMs(id, list, false) === 0;
    const [isNow, nowMs] = unread.has(id) ? [pace.waitMs(list) === 0, 0] : [isDue, pace.nextMs(id, false) / 2];
    return isNow ? nowMs : undefined;
  }

  async function areProposals(id: string, reported: readonly ReportedPull[]): Promise<boolean> {
    const isOwn = ownBranchesOf(store, id);
    for (const { head } of reported) if (head === undefined || (await isOwn({ head })) === 'none') return false;
    return true;
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
    const begun = new Map<string, NonNullable<ReviewPolicy['mergesSince']>>();
    for (const review of await options.reviewsOf(object)) {
      if (review.publishOn === 'approval') continue;
      const since = review.mergesSince ?? (await mergePublicationOf(client, repository, review, signal));
      if (since === undefined) return { requeueAfter: BEGIN_MS, reason: 'the policies have to be read again' };
      begun.set(review.policy, since.ofUsers ?? since);
    }
    const host = opened.get(keyText(key));
    if (host === undefined) return undefined;
    const { pulls } = host;
    const mergesSince = ({ policy }: ReviewPolicy) => begun.get(policy);
    const { mayApprove, renderer, restrictedRenderer, requests } = options;
    const rights = { mayApprove, renderer, restrictedRenderer, requests };
    const teamsOf = (review: ReviewPolicy) => host.teamsOf(review, repository.namespace);
    const of = { client, store, events, clock, object, repository, forge: pulls.forge };
    const since = { mergesSince, allMergesSince: [...begun.values()] };
    return applyUserMerges({ ...of, ...rights, ...since, teamsOf, signal }, pulls);
  }

  /** The other branches of its Git repository, with those that read their pull requests. */
  async function otherBases(object: Stored<Repository>) {
    return [...(await otherBranchesOf(reader, object))].map(([base, all]) => {
      const { key } = leadOf(all) ?? {};
      return { base, pulls: key === undefined ? undefined : opened.get(keyText(key))?.pulls };
    });
  }

  /** One reconciliation at a time writes what is about one pull request, whatever Repository it began in. */
  async function check(
    key: ObjectKey,
    object: Stored<Repository> | undefined,
    number: number,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    if (object === undefined) return undefined;
    const git = await canonicalAddress(object.spec.git?.repo ?? '');
    return checking.run(JSON.stringify([git, object.spec.git?.branch, number]), async () => {
      const registrations = await registrationsAt(reader, object);
      const lead = leadOf(registrations);
      const item = { ...key, name: `${key.name}.${number}` };
      const host = opened.get(keyText(key));
      if (lead?.repository === undefined || host === undefined) return undefined;
      if (keyText(lead.key) !== keyText(key)) {
        // What this one has written, another one may write over, and what it has asked, another one asks.
        forgetWritten(host.pulls.writtenOf(number));
        rights.forget(key, item);
        enqueue({ ...lead.key, name: `${lead.key.name}.${number}` });
        return undefined;
      }
      if (!host.pulls.has(number)) return undefined;
      await host.retain(registrations);
      const { repository } = lead;
      const bases = [{ base: repository.layout.branch, pulls: host.pulls }, ...(await otherBases(object))];
      const about = { object, repository, host, registrations, git, bases };
      const { mayCreate, mayApprove, renderer, restrictedRenderer, requests } = options;
      const using = { store, clock, events, mayCreate, mayApprove, renderer, restrictedRenderer, renderings, requests };
      const asking = rights.about(key, item);
      const wakes = { planPoll: () => enqueue(key), wake: () => enqueue(item) };
      const result = await checkUserPull({ ...using, ...wakes, asking, heads, signal }, about, number);
      // It may have been closed meanwhile.
      if (!host.pulls.has(number) || opened.get(keyText(key)) !== host) rights.forget(key, item);
      return result;
    });
  }
}

/**
 * Forgets the heads that an earlier process has fetched, of pull requests that ended while no process ran. Branches can share a mirror: the one that is
 * read last does it.
 */
async function forgetEnded(
  { untracked }: Pick<PackageRepository, 'untracked'>,
  all: readonly (Pick<UserPulls, 'has' | 'hasBegun'> | undefined)[],
): Promise<void> {
  if (all.some((pulls) => pulls?.hasBegun !== true)) return;
  for (const number of await untracked.fetchedPulls())
    if (!all.some((pulls) => pulls?.has(number))) await untracked.forgetPull(number);
}

/** Since when merges publish: what was merged before the first policy for that is none of it. Undefined if none of them lets merges publish. */
function mergedSince(reviews: readonly ReviewPolicy[]): string | undefined {
  return reviews
    .filter(({ publishOn }) => publishOn !== 'approval')
    .flatMap(({ createdAt }) => createdAt ?? [])
    .sort()[0];
}
