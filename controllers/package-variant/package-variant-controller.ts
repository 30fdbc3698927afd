import type { RenderStatus } from '../../kptfile-schema/index.ts';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { writeStatus } from '../../src/controller/write-status.ts';
import { type ErrorCode, isSluiceError, SluiceError } from '../../src/foundation/sluice-error.ts';
import { shorten } from '../../src/foundation/text/shorten.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import {
  ensuredMessage,
  PACKAGE_VARIANT_FINALIZER,
  type PackageVariant,
  packageVariantKind,
  WAITING,
} from '../../src/resource/kinds/porch/package-variant.ts';
import { keyOf, type Stored } from '../../src/resource/object/object.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { type DraftRate, DraftRates, rateOfPackage } from '../draft-rates.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import type { PolicyScope } from '../proposal/pending-revisions.ts';
import { downstreamTarget } from './downstream-target.ts';
import { DraftBudget } from './draft-budget.ts';
import { releaseRevisions } from './end-variant.ts';
import { Blocked, type Ensured, ensureDownstream, Waiting } from './ensure-downstream.ts';
import { explainUnopened } from './explain-unopened.ts';
import { MERGE_REPORTS, mergeConditions, newMessages } from './merge-reports.ts';
import { MergeTextReader, type MergeTexts } from './merge-texts.ts';
import { OwnedRevisions } from './owned-revisions.ts';
import { hasOpenDraft, selectUpstream } from './plan-variant.ts';
import type { SelectableKinds } from './selectable-kind.ts';
import { SelectedObjects } from './selected-objects.ts';
import { VariantRings } from './variant-rings.ts';
import { variantSources } from './variant-sources.ts';

export const PACKAGE_VARIANT_ACTOR = 'controller:package-variant';

export interface PackageVariantOptions {
  readonly client: Client;
  readonly store: Pick<
    RevisionStore,
    | 'list'
    | 'content'
    | 'find'
    | 'subscribe'
    | 'get'
    | 'create'
    | 'change'
    | 'evaluate'
    | 'update'
    | 'repositories'
    | 'repositoryOf'
    | 'findRepository'
    | 'openingError'
    | 'onArrival'
    | 'onPromotion'
  >;
  /** The kinds whose objects can be injected. */
  readonly kinds: SelectableKinds;
  readonly clock: Clock;
  /** Shared with other controllers that open drafts. Default: those of this controller only. */
  readonly rates?: DraftRates;
  /** The Repositories of other namespaces that share packages. */
  readonly sharing?: PolicyScope['sharing'];
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

/** The upstream cannot be cloned now: in the words of Porch, the variant is stalled. */
class Stalled extends Error {
  override readonly name = 'Stalled';
}

/** A repository that is registered is not open yet, which is no failure. */
class NotOpenYet extends Error {
  override readonly name = 'NotOpenYet';
}

type Rendered = Ensured & {
  readonly merges: MergeTexts;
  readonly rendered: RenderStatus | undefined;
  /** Why objects that it injects cannot be read. */
  readonly unreadable: string | undefined;
};

/** Until one of these passes, which events report, another attempt fails as well. */
const LASTING: readonly ErrorCode[] = [
  ...(['InvalidInput', 'Refused', 'PushRefused', 'NotFound', 'LimitExceeded', 'RenderFailed', 'Unsupported'] as const),
];
/** Milliseconds after which a lasting problem is examined again, in case no event reported its end. */
const RETRY_MS = 10 * 60_000;
const MAX_MESSAGE_CHARACTERS = 4096;

/** Keeps downstream packages up to date with their upstream packages. */
export function packageVariantController({
  store,
  clock,
  kinds,
  sharing,
  ...options
}: PackageVariantOptions): ControllerOptions {
  const client = options.client.as({ name: PACKAGE_VARIANT_ACTOR }, 'controller');
  const recorder = options.recorder ?? new EventRecorder({ client, clock, component: PACKAGE_VARIANT_ACTOR });
  const events = new EventDeduplicator(recorder);
  const selected = new SelectedObjects(client, kinds);
  const owned = new OwnedRevisions(store);
  const changes = new MergeTextReader();
  const rings = new VariantRings({ store, ...(sharing === undefined ? {} : { sharing }) });
  const rates = options.rates ?? new DraftRates(clock);
  const budget = new DraftBudget(client, ({ metadata: { namespace, uid = '' }, spec: { downstream } }) =>
    hasOpenDraft(uid, store.list({ repository: `${namespace}/${downstream.repo}`, package: downstream.package })),
  );

  return {
    name: 'package-variant',
    sources: [...variantSources(store), selected.source, owned.source, budget.source, rings.source],
    // Many at a time, so that the drafts of one repository get into one push.
    maxConcurrentReconciles: 64,
    namespaceShare: { most: 48, mostFailing: 8 },
    async reconcile(key, { signal }): Promise<ReconcileResult | undefined> {
      const variant = await client.find(packageVariantKind, key);
      if (variant === undefined) {
        selected.forget(key);
        rings.forget(key);
        changes.forget(key);
        return void events.forget(key);
      }
      const { name, namespace = '' } = variant.metadata;
      const downstream = store.findRepository(`${namespace}/${variant.spec.downstream.repo}`);
      // Another process works on the packages of this repository.
      if (downstream?.follows === true) return undefined;
      const context: RequestContext = {
        ...{ actor: { name: PACKAGE_VARIANT_ACTOR }, face: 'controller', signal },
        reason: `package variant ${name}`,
      };
      if (variant.metadata.deletionTimestamp !== undefined) {
        const result = await end(variant, context);
        await budget.report(variant, false);
        return result;
      }
      const held = await hold(variant);
      let isWaiting = false;
      try {
        const ensured = await ensure(held, context);
        for (const report of MERGE_REPORTS)
          for (const text of newMessages(held, ensured, report)) events.record(held, 'Warning', report.type, text);
        if (ensured.overtaken !== undefined) events.record(held, 'Warning', 'PublishedSince', ensured.overtaken);
        await report(held, ensured);
        return ensured.unreadable === undefined ? undefined : wait(ensured.unreadable);
      } catch (error) {
        isWaiting = error instanceof Waiting;
        return await reportFailure(held, error);
      } finally {
        await budget.report(held, isWaiting);
      }
    },
  };

  /** With the finalizer, before anything belongs to it. */
  async function hold(variant: Stored<PackageVariant>): Promise<Stored<PackageVariant>> {
    const { finalizers = [] } = variant.metadata;
    if (finalizers.includes(PACKAGE_VARIANT_FINALIZER)) return variant;
    const metadata = { ...variant.metadata, finalizers: [...finalizers, PACKAGE_VARIANT_FINALIZER] };
    return client.update(packageVariantKind, { ...variant, metadata });
  }

  async function ensure(variant: Stored<PackageVariant>, context: RequestContext): Promise<Rendered> {
    const { metadata, spec, status } = variant;
    const { namespace = '', generation = 1 } = metadata;
    const ring = await rings.ringOf(variant);
    if (ring !== undefined) throw new Stalled(ringProblem(ring));
    const upstreamRepository = await repositoryOf(namespace, spec.upstream.repo, Stalled);
    const repository = await repositoryOf(namespace, spec.downstream.repo, Blocked);
    const rows = store.list({ repository: upstreamRepository.id, package: spec.upstream.package });
    const upstream = selectUpstream(spec.upstream, rows);
    if ('problem' in upstream) throw new Stalled(upstream.problem);
    // The spec may have named another downstream package before.
    if (generation > 1 && status?.observedGeneration !== generation)
      await releaseRevisions(
        { store, owned },
        variant,
        context,
        ({ key }) => key.repository === spec.downstream.repo && key.package === spec.downstream.package,
      );
    const reading = selected.readingFor(keyOf(variant));
    const read = reading.read;
    let rendered: RenderStatus | undefined;
    let taken: DraftRate | undefined;
    let ensured: Ensured;
    try {
      ensured = await ensureDownstream({
        ...{ store, variant, upstream: upstream.revision, upstreamRepository, repository, read, context },
        onRendered: (status) => {
          rendered = status;
        },
        requestDraft: async () => {
          taken = await takeDraft(variant);
        },
      });
    } catch (error) {
      if (taken !== undefined) rates.giveBack(taken);
      throw error;
    }
    const unreadable = reading.end();
    const merges = await changes.of(keyOf(variant), ensured.revision, repository);
    return { ...ensured, merges, rendered, unreadable };
  }

  /** Rejects with Waiting if the variant must not open a draft now. */
  async function takeDraft(variant: Stored<PackageVariant>): Promise<DraftRate> {
    const { namespace = '' } = variant.metadata;
    const { repo, package: path } = variant.spec.downstream;
    const reason = await budget.request(variant);
    if (reason !== undefined) throw new Waiting(reason);
    const rate = rateOfPackage(store, { namespace, repository: repo, path });
    const refused = rates.take([rate]);
    if (refused === undefined) return rate;
    const message = `waits to open a draft: at most ${rate.most} drafts of a package are opened in a minute; does each of them lead to another revision of its upstream?`;
    throw new Waiting(message, refused.pauseMs);
  }

  async function repositoryOf(
    namespace: string,
    name: string,
    problem: new (message: string) => Error,
  ): Promise<PackageRepository> {
    const id = `${namespace}/${name}`;
    const found = store.findRepository(id);
    if (found !== undefined) return found;
    const opening = store.openingError(id);
    if (opening !== undefined) throw new NotOpenYet(opening.message);
    const { message, isOpening } = await explainUnopened(client, { namespace, name });
    throw isOpening ? new NotOpenYet(message) : new problem(message);
  }

  async function end(variant: Stored<PackageVariant>, context: RequestContext): Promise<ReconcileResult | undefined> {
    const { finalizers = [] } = variant.metadata;
    if (!finalizers.includes(PACKAGE_VARIANT_FINALIZER)) return undefined;
    const opening = store.openingError(`${variant.metadata.namespace}/${variant.spec.downstream.repo}`);
    if (opening !== undefined) return wait(opening.message);
    try {
      await releaseRevisions({ store, owned }, variant, context);
    } catch (error) {
      return reportFailure(variant, error);
    }
    const rest = finalizers.filter((one) => one !== PACKAGE_VARIANT_FINALIZER);
    await client.update(packageVariantKind, { ...variant, metadata: { ...variant.metadata, finalizers: rest } });
    return undefined;
  }

  async function report(variant: Stored<PackageVariant>, ensured: Rendered): Promise<void> {
    const { revision, done, waits, rendered } = ensured;
    if (done !== undefined) events.record(variant, 'Normal', done.reason, done.message);
    const [before] = variant.status?.downstreamTargets ?? [];
    await writeStatus(client, packageVariantKind, variant, {
      conditions: [
        NOT_STALLED,
        { ...{ type: 'Ready', status: 'True', reason: 'NoErrors' }, message: ensuredMessage(waits) },
        ...mergeConditions(variant, ensured),
      ],
      fields: {
        observedGeneration: variant.metadata.generation,
        downstreamTargets: [downstreamTarget(revision, rendered, before)],
      },
      now: clock.now(),
    });
  }

  async function reportWaiting(
    variant: Stored<PackageVariant>,
    { message, retryMs }: Waiting,
  ): Promise<ReconcileResult> {
    const ready = { type: 'Ready', status: 'False', reason: WAITING, message } as const;
    await writeStatus(client, packageVariantKind, variant, { conditions: [NOT_STALLED, ready], now: clock.now() });
    return retryMs === undefined ? wait(message) : { requeueAfter: retryMs, reason: message };
  }

  /** Writes the reason into the status. What ends by itself is thrown, for another attempt. */
  async function reportFailure(variant: Stored<PackageVariant>, error: unknown): Promise<ReconcileResult> {
    if (error instanceof NotOpenYet) return wait(error.message);
    if (error instanceof Waiting) return reportWaiting(variant, error);
    const isStalled = error instanceof Stalled;
    const lasts =
      isStalled || error instanceof Blocked || (error instanceof SluiceError && LASTING.includes(error.code));
    if (isSluiceError(error, 'Conflict') || isSluiceError(error, 'Busy')) throw error;
    if (!lasts && !(error instanceof SluiceError)) throw error;
    const message = shorten(error.message, MAX_MESSAGE_CHARACTERS);
    events.record(variant, 'Warning', isStalled ? 'Stalled' : 'Error', message);
    const stalled = isStalled
      ? ({ type: 'Stalled', status: 'True', reason: 'ValidationError', message } as const)
      : NOT_STALLED;
    await writeStatus(client, packageVariantKind, variant, {
      conditions: [
        stalled,
        {
          ...{ type: 'Ready', status: 'False', reason: 'Error' },
          message: isStalled ? 'invalid packagevariant object' : message,
        },
      ],
      now: clock.now(),
    });
    if (!lasts) throw error;
    return wait(message);
  }
}

function ringProblem(ring: string): string {
  const end = 'and each of their revisions would lead to another one without end';
  return `package ${ring}, ${end}: choose another spec.upstream in one of their variants, or remove a Dependency object of one of them`;
}

const NOT_STALLED = {
  type: 'Stalled',
  status: 'False',
  reason: 'Valid',
  message: 'all validation checks passed',
} as const;

/** An event wakes the controller before. */
function wait(reason: string): ReconcileResult {
  return { requeueAfter: RETRY_MS, reason };
}
