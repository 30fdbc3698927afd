import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import { specChanged, specOrMetadataChanged } from '../../src/controller/predicates.ts';
import type { ReconcileContext, ReconcileResult } from '../../src/controller/reconciler.ts';
import { type Source, toObject, triggerSource, watchKind } from '../../src/controller/source.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { nextExpiry } from '../../src/package/model/gates/gates.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { revisionId } from '../../src/package/model/revision/package-revision.ts';
import { failedEdit } from '../../src/package/plan/edit/edit-kptfile-text.ts';
import { describeKptfileProblems, kptfileProblems } from '../../src/package/plan/edit/kptfile-problems.ts';
import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import type { Resolver } from '../../src/package/plan/ports/resolver.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import type { PolicyChange } from '../../src/package/store/policies/concerned-revisions.ts';
import { selectsToRestrict } from '../../src/package/store/policies/selected-packages.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import {
  packageRevisionKind,
  type PackageRevision as RevisionObject,
} from '../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { functionPolicyKind } from '../../src/resource/kinds/sluice/function-policy.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import {
  type DeepReadonly,
  type KubernetesObject,
  keyOf,
  keyText,
  type ObjectKey,
} from '../../src/resource/object/object.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { changeOf, type PolicyScope } from '../proposal/pending-revisions.ts';
import { type Arrangement, arrangeResolvers } from './arrange-resolvers.ts';
import { CONTROLLER_ACTOR, describePlan, type Plan } from './plan-change.ts';
import { runAndPlan } from './run-and-plan.ts';
import { failureOf, type RunOutcome } from './run-resolvers.ts';
import { SettledCache } from './settled-cache.ts';
import { isStopped } from './settlement.ts';

/** Reason of the event about a Kptfile that kpt rejects. */
const INVALID_KPTFILE = 'KptfileInvalid';
/** Until a condition is written that waits for a merge queue. */
const QUEUED_MS = 60_000;
/** Topics of events that stay valid when a run finds no problem. */
const KEPT_TOPICS: ReadonlySet<string> = new Set(['Resolved', 'Rendering', INVALID_KPTFILE]);

export interface RevisionControllerOptions {
  readonly store: RevisionStore;
  readonly client: Client;
  readonly clock: Clock;
  readonly resolvers: readonly Resolver[];
  /** Runs before the resolvers in every round. */
  readonly renderer?: Renderer;
  /** Where policies apply. */
  readonly scope?: Omit<PolicyScope, 'systemNamespace'>;
  /** Additional sources that wake drafts: the dependencies of resolvers. */
  readonly sources?: readonly Source<ObjectKey>[];
  /** Milliseconds that one resolver may take. Default 60,000. */
  readonly resolverTimeout?: number;
  /** Default 8, of which one namespace holds at most half. */
  readonly maxConcurrentReconciles?: number;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

/** Runs the resolvers of every draft and writes their results, at most one commit each time. */
export function revisionController(options: RevisionControllerOptions): ControllerOptions {
  const { store, sources = [], scope = {} } = options;
  const controller = new RevisionReconciler(options);
  const draftsOf = (repository?: string) =>
    store
      .list({ lifecycle: 'Draft', ...(repository === undefined ? {} : { repository }) })
      .map(({ namespace, name }) => ({ namespace, name }));
  /** The drafts that policies select, and those of repositories that share packages with one of their namespace. */
  const draftsUnder = ({ namespace, policies }: PolicyChange): ObjectKey[] => {
    const own = store.list({ lifecycle: 'Draft' }).filter(
      (revision) =>
        revision.namespace === namespace &&
        (policies?.some(({ spec: { selector } }) => {
          const { repositorySelector: _labels, ...ofPackages } = selector;
          return selectsToRestrict(ofPackages, revision, undefined);
        }) ??
          true),
    );
    const here = store.repositories().filter((repository) => repository.namespace === namespace);
    const shared = here.flatMap(({ repository: name }) => scope.sharing?.({ namespace, name }) ?? []);
    const ids = new Set(shared.map(keyText));
    return [...own.map(({ name }) => ({ namespace, name })), ...[...ids].flatMap(draftsOf)];
  };
  const external: Source<ObjectKey>[] = [
    watchKind(packagePolicyKind, { predicate: specChanged, map: (event) => draftsUnder(changeOf(event)) }),
    triggerSource(
      (enqueue) =>
        scope.onPolicyChange?.((change) => {
          for (const key of draftsUnder(change)) enqueue(key);
        }) ?? (() => undefined),
    ),
    watchKind(functionPolicyKind, { predicate: specChanged, map: () => draftsOf() }),
    watchKind(repositoryKind, {
      predicate: specOrMetadataChanged,
      map: ({ object }) => draftsOf(object.metadata.name),
    }),
    ...sources,
    // Proposals too: their conditions were not checked while the repository followed.
    triggerSource((enqueue) =>
      store.onPromotion((repository) => {
        for (const { namespace, name, lifecycle } of store.list({ repository }))
          if (lifecycle === 'Draft' || lifecycle === 'Proposed') enqueue({ namespace, name });
      }),
    ),
  ];
  return {
    name: 'revision',
    reconcile: (key, context) => controller.reconcile(key, context),
    sources: [
      watchKind(packageRevisionKind, {
        predicate: (event) =>
          isDraft(event.object) ||
          (event.type === 'update' && isDraft(event.old)) ||
          event.object.spec.lifecycle === 'Proposed',
        map: toObject,
      }),
      ...external.map((source) => controller.waking(source)),
    ],
    maxConcurrentReconciles: options.maxConcurrentReconciles ?? 8,
    // Resolvers can wait for programs and hosts.
    namespaceShare: { most: 4, mostFailing: 2 },
    maxDelayMs: 300_000,
  };
}

class RevisionReconciler {
  readonly #options: RevisionControllerOptions;
  readonly #arrangement: Arrangement;
  /** The resolvers that evaluate proposed revisions too. */
  readonly #ofProposals: Arrangement;
  readonly #settled: SettledCache;
  readonly #events: EventDeduplicator;

  constructor(options: RevisionControllerOptions) {
    this.#options = options;
    this.#arrangement = arrangeResolvers(options.resolvers);
    this.#ofProposals = arrangeResolvers(options.resolvers.filter(({ checksProposals }) => checksProposals === true));
    const { clock } = options;
    this.#settled = new SettledCache(clock);
    const client = options.client.as({ name: CONTROLLER_ACTOR }, 'controller');
    this.#events = new EventDeduplicator(
      options.recorder ?? new EventRecorder({ client, clock, component: CONTROLLER_ACTOR }),
    );
  }

  /** A source whose drafts are run again although they did not change themselves. */
  waking(source: Source<ObjectKey>): Source<ObjectKey> {
    return {
      start: (context) =>
        source.start({
          ...context,
          enqueue: (key) => {
            this.#settled.wake(keyText(key));
            context.enqueue(key);
          },
        }),
    };
  }

  async reconcile(key: ObjectKey, { signal }: ReconcileContext): Promise<ReconcileResult> {
    try {
      return await this.#reconcile(key, signal);
    } catch (error) {
      // Its repository was unregistered meanwhile, or the revision was deleted.
      const isGone = isSluiceError(error, 'NotFound') && this.#options.store.find(keyText(key)) === undefined;
      if (!isGone) throw error;
      this.#settled.forget(keyText(key));
      this.#events.forget(key);
      return {};
    }
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const { store } = this.#options;
    const id = keyText(key);
    let revision = store.find(id);
    const isLeft = revision !== undefined && store.repositoryOf(revision).follows;
    const isProposal = revision?.lifecycle === 'Proposed' && revision.record?.deletionTimestamp === undefined;
    if (isProposal && !isLeft && this.#ofProposals.order.length > 0) {
      this.#settled.forget(id);
      return this.#reconcileProposal(id, signal);
    }
    if (revision?.lifecycle !== 'Draft' || revision.record?.deletionTimestamp !== undefined || isLeft) {
      this.#settled.forget(id);
      this.#events.forget(key);
      return {};
    }
    const wait = this.#settled.waitIfSettled(revision);
    if (wait !== undefined) return wait;
    if (revision.kptfile === undefined) return this.#settleUnreadable(revision);
    let evaluation = await store.evaluate(id);
    if (evaluation.revision.kptfile === undefined) return this.#settleUnreadable(evaluation.revision);
    // Conditions of a push are recorded before the next push, even if there is no change to resolve.
    const context = { actor: { name: CONTROLLER_ACTOR }, face: 'controller', signal } as const;
    if (revision.record?.commit !== revision.commit) {
      revision = await store.change(id, { recordPush: true }, context);
      evaluation = await store.evaluate(id);
    }
    this.#reportInvalidKptfile(evaluation);
    if (isStopped(evaluation)) return this.#settled.settle(evaluation.revision);
    try {
      return await this.#resolve(evaluation, signal);
    } catch (error) {
      const failed = failedEdit(error);
      if (failed === undefined) throw error;
      this.#record(revision, 'Warning', 'KptfileNotEditable', `no condition can be written: ${failed.message}`);
      return this.#settled.settle(evaluation.revision);
    }
  }

  #settleUnreadable(revision: PackageRevision): ReconcileResult {
    const message = `the Kptfile cannot be read: ${revision.problem ?? 'there is none'}`;
    this.#record(revision, 'Warning', 'KptfileUnreadable', message);
    return this.#settled.settle(revision);
  }

  /** The inputs of some conditions of a proposal may change while it waits for an approval. */
  async #reconcileProposal(id: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { clock, store, resolverTimeout: timeout = 60_000 } = this.#options;
    const evaluation = await store.evaluate(id);
    const { revision } = evaluation;
    if (revision.kptfile === undefined) return {};
    let isHeld = false;
    for (const { name: only } of this.#ofProposals.order) {
      const context = { now: clock.now(), signal };
      const options = { context, clock, namespace: revision.namespace, timeout, only };
      const { outcome, plan } = await runAndPlan(evaluation, this.#ofProposals, options);
      const { conditions = [], withdraw = [] } = plan.change ?? {};
      if (conditions.length + withdraw.length > 0) {
        const writer = { actor: { name: plan.actor }, face: 'controller', signal } as const;
        try {
          await store.change(id, { conditions, withdraw, expectedCommit: revision.commit }, writer);
          // Its commit wakes this controller for the other conditions.
          return {};
        } catch (error) {
          if (!isSluiceError(error, 'Busy') || !store.repositoryOf(revision).refusals.isInMergeQueue(revision))
            throw error;
          isHeld = true;
        }
      }
      const failure = failureOf(outcome.failures);
      if (failure !== undefined) throw failure;
    }
    return isHeld ? { requeueAfter: QUEUED_MS, reason: 'its pull request is in a merge queue' } : {};
  }

  async #resolve(evaluation: RevisionEvaluation, signal: AbortSignal): Promise<ReconcileResult> {
    const { revision } = evaluation;
    const { clock, renderer, resolverTimeout: timeout = 60_000 } = this.#options;
    const { namespace } = revision;
    const options = { context: { now: clock.now(), signal }, clock, renderer, namespace, timeout };
    const { outcome, plan } = await runAndPlan(evaluation, this.#arrangement, options);
    signal.throwIfAborted();
    this.#reportProblems(revision, outcome, plan);
    let after = revision;
    if (plan.change !== undefined) {
      const context = { actor: { name: plan.actor }, face: 'controller', signal } as const;
      try {
        after = await this.#options.store.change(revisionId(revision), plan.change, context);
      } catch (error) {
        return this.#budgetWait(revision, error);
      }
      if (after.commit !== revision.commit) this.#record(after, 'Normal', 'Resolved', describePlan(plan));
    }
    const failure = failureOf(outcome.failures);
    if (failure !== undefined) throw failure;
    if (outcome.partial) return { requeueAfter: 0, reason: 'the other resolvers are written next' };
    // When a condition expires by policy, its resolver issues it again.
    const gates = evaluation.policy.validFor.length === 0 ? [] : (await this.#options.store.evaluate(after.name)).gates;
    const expiry = nextExpiry(gates);
    const expiresAfter = expiry === undefined ? Number.POSITIVE_INFINITY : Math.max(expiry - clock.now(), 0);
    const requested = outcome.unsettled === undefined ? outcome.requeueAfter : undefined;
    if (expiresAfter < (requested ?? Number.POSITIVE_INFINITY))
      return this.#settled.settle(after, expiresAfter, 'a condition expires');
    return this.#settled.settle(after, requested, 'a resolver requested it');
  }

  /** A plain push can bring such a Kptfile too, and its client gets no warning. */
  #reportInvalidKptfile({ revision, content }: RevisionEvaluation): void {
    const problems = describeKptfileProblems(kptfileProblems(content.files));
    if (problems === undefined) this.#events.forgetTopic(keyOf(this.#objectOf(revision)), INVALID_KPTFILE);
    else this.#record(revision, 'Warning', INVALID_KPTFILE, `it cannot be proposed, as kpt rejects: ${problems}`);
  }

  #budgetWait(revision: PackageRevision, error: unknown): ReconcileResult {
    const details = isSluiceError(error, 'LimitExceeded') ? error.details : undefined;
    if (!isBudget(details)) throw error;
    const { clock } = this.#options;
    this.#record(revision, 'Warning', 'BudgetExhausted', String((error as Error).message));
    return this.#settled.settle(
      revision,
      Date.parse(details.retryAt) - clock.now(),
      'the budget of commits is used up',
    );
  }

  #reportProblems(revision: PackageRevision, outcome: RunOutcome, { refused }: Plan): void {
    const { failures, problems, unsettled, renderFailure, notes } = outcome;
    const warn = (reason: string, message: string) => this.#record(revision, 'Warning', reason, message);
    for (const { resolver, message } of failures) warn('ResolverFailed', `${resolver}: ${message}`);
    for (const { reason, message } of problems) warn(reason, message);
    if (refused.length > 0) warn('GiverRefused', refused.join('; '));
    if (notes.length > 0) this.#record(revision, 'Normal', 'Rendering', notes.join('; '));
    if (renderFailure !== undefined) warn('RenderFailed', renderFailure);
    if (unsettled !== undefined) warn('NotSettled', unsettled.changes);
    // A problem that returns after a run without problems is reported again.
    const quiet = unsettled === undefined && renderFailure === undefined;
    const isWell = failures.length + problems.length + refused.length === 0 && quiet;
    if (isWell) this.#events.forget(keyOf(this.#objectOf(revision)), KEPT_TOPICS);
  }

  #record(revision: PackageRevision, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#events.record(this.#objectOf(revision), type, reason, message, reason);
  }

  #objectOf({ namespace, name, uid }: PackageRevision): KubernetesObject {
    const { apiVersion, kind } = packageRevisionKind;
    return { apiVersion, kind, metadata: { namespace, name, uid } };
  }
}

function isDraft(object: DeepReadonly<RevisionObject>): boolean {
  return object.spec.lifecycle === 'Draft';
}

function isBudget(details: unknown): details is { readonly retryAt: string } {
  return typeof details === 'object' && details !== null && 'budgetExhausted' in details && 'retryAt' in details;
}
