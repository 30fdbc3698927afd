import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { writeStatus } from '../../src/controller/write-status.ts';
import { isSluiceError, type SluiceError, unlessMissing } from '../../src/foundation/sluice-error.ts';
import { shorten } from '../../src/foundation/text/shorten.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { type PackageVariant, packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { type PackageVariantSet, packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition, type NewCondition } from '../../src/resource/object/condition.ts';
import { keyOf, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { explainUnopened } from '../package-variant/explain-unopened.ts';
import { selectUpstream } from '../package-variant/plan-variant.ts';
import type { KindHolder, SelectableKinds } from '../package-variant/selectable-kind.ts';
import { listProblems, planVariants, type VariantPlan } from './plan-variants.ts';
import { ReadRepositories } from './read-repositories.ts';
import type { Place, TemplateInputs } from './render-template.ts';
import { DOWNSTREAM_CLAIMED, NO_MATCHING_TARGETS, setSources } from './set-sources.ts';
import { namedKinds, type Unrolled, unrollTargets } from './unroll-targets.ts';
import { VARIANTS_FAILING, VariantCounts } from './variant-counts.ts';

const PACKAGE_VARIANT_SET_ACTOR = 'controller:package-variant-set';

export interface PackageVariantSetOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'list' | 'openingError' | 'findRepository' | 'onArrival'>;
  /** The kinds whose objects can be targets. */
  readonly kinds: SelectableKinds;
  readonly clock: Clock;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

/** Why a set is not, or not completely, carried out. Stalled: nothing is done. */
interface Problem {
  readonly reason: string;
  readonly message: string;
  readonly isStalled: boolean;
}

/** How a reconciliation ended. */
interface Outcome {
  readonly problem?: Problem;
  /** What is noteworthy, although it is no problem. */
  readonly note?: string;
  /** The upstream repository is not open yet, which is no failure: when it opens, the set is woken. */
  readonly isOpening?: boolean;
  /** No other attempt is due until something changes. */
  readonly isFinal?: boolean;
}

/** Milliseconds after which a problem is examined again, in case no event reported its end. */
const RETRY_MS = 10 * 60_000;
const MAX_MESSAGE_CHARACTERS = 4096;

/** Creates, updates and deletes the variants of sets. */
export function packageVariantSetController({
  store,
  clock,
  kinds,
  ...options
}: PackageVariantSetOptions): ControllerOptions {
  const client = options.client.as({ name: PACKAGE_VARIANT_SET_ACTOR }, 'controller');
  const recorder = options.recorder ?? new EventRecorder({ client, clock, component: PACKAGE_VARIANT_SET_ACTOR });
  const events = new EventDeduplicator(recorder);
  const counts = new VariantCounts(clock);
  const read = new ReadRepositories();

  return {
    name: 'package-variant-set',
    sources: [
      ...setSources({ kinds, store, repositories: read }).map((source) => counts.waking(source)),
      counts.source,
    ],
    // One at a time in each namespace: of two sets with one downstream package, the second one finds the variant of the first.
    maxConcurrentReconciles: 4,
    namespaceShare: { most: 1, mostFailing: 1 },
    async reconcile(key, { signal }): Promise<ReconcileResult | undefined> {
      const onlyCounts = counts.take(key);
      const set = await client.find(packageVariantSetKind, key);
      if (set === undefined) {
        read.replace(key, new Set());
        await kinds.hold?.(holderOf(key), []);
        return void events.forget(key);
      }
      // Its variants have it as their owner: the garbage collection deletes them.
      if (set.metadata.deletionTimestamp !== undefined) return undefined;
      await kinds.hold?.(holderOf(key), namedKinds(set));
      if (onlyCounts && (await reportCounts(set))) return undefined;
      const { problem, note, isOpening = false, isFinal = false } = await ensure(set, signal);
      // Each start of the server opens repositories again: what the last one reported holds until then.
      if (!isOpening || !isCarriedOut(set)) await report(set, problem, note, isOpening);
      return problem === undefined || isFinal ? undefined : { requeueAfter: RETRY_MS, reason: problem.message };
    },
  };

  async function ensure(set: Stored<PackageVariantSet>, signal: AbortSignal): Promise<Outcome> {
    const { namespace = '' } = set.metadata;
    const { upstream: wanted, maxTargets } = set.spec;
    const stalled = (reason: string, message: string) => ({ problem: { reason, message, isStalled: true } });
    // It can have been stored before there was a rule. A limit of time may hold on a loaded machine alone: it is tried again.
    const invalid = packageVariantSetKind.strategy.validate(set).map(({ field, message }) => `${field}: ${message}`);
    if (invalid.length > 0) return stalled('ValidationError', invalid.join(', '));
    const id = `${namespace}/${wanted.repo}`;
    const opening = store.openingError(id);
    if (opening !== undefined) return { ...stalled('UpstreamNotFound', opening.message), isOpening: true };
    if (store.findRepository(id) === undefined) {
      const { message, isOpening } = await explainUnopened(client, { namespace, name: wanted.repo });
      return { ...stalled('UpstreamNotFound', message), isOpening };
    }
    const found = selectUpstream(wanted, store.list({ repository: id, package: wanted.package }));
    if ('problem' in found) return stalled('UpstreamNotFound', found.problem);
    // Its labels and annotations as clients see them.
    const upstream = await client.get(packageRevisionKind, { namespace, name: found.revision.name });
    const unrolled = await unroll(set);
    if (isSluiceError(unrolled)) return stalled(NO_MATCHING_TARGETS, unrolled.message);
    const { places, empty } = unrolled;
    if (places.length > maxTargets)
      return stalled(
        'TooManyTargets',
        `the set has ${places.length} targets, spec.maxTargets permits ${maxTargets}; nothing was changed: raise it, or select fewer`,
      );
    const { items: present } = await client.list(packageVariantKind, { namespace });
    const planned = await plan(set, places, upstream, present);
    // Only a change makes it cheaper.
    if (isSluiceError(planned)) return { ...stalled('TooExpensive', planned.message), isFinal: true };
    const { create, update, remove, problems, claims } = planned;
    for (const variant of remove) {
      signal.throwIfAborted();
      const { uid } = variant.metadata;
      await unlessMissing(
        client.delete(packageVariantKind, keyOf(variant), { uid, reason: 'it is no target any more' }),
      );
    }
    for (const variant of update) {
      signal.throwIfAborted();
      await client.update(packageVariantKind, variant);
    }
    for (const variant of create) {
      signal.throwIfAborted();
      await client.create(packageVariantKind, variant);
    }
    const done = Object.entries({ created: create, updated: update, deleted: remove }).filter(
      ([, some]) => some.length > 0,
    );
    if (done.length > 0)
      recorder.record(
        set,
        'Normal',
        'Reconciled',
        `variants: ${done.map(([what, some]) => `${some.length} ${what}`).join(', ')}`,
      );
    const failed = (reason: string, message: string) => ({ problem: { reason, message, isStalled: false } });
    if (problems.length > 0)
      return failed('UnexpectedError', `${listProblems(problems)}; no variant is deleted meanwhile`);
    if (claims.length > 0) return failed(DOWNSTREAM_CLAIMED, listProblems(claims));
    return empty.length === 0 ? {} : { note: empty.join(', ') };
  }

  /** Plans until no repository changed between its reading and the moment from which its events wake the set. */
  async function plan(
    set: Stored<PackageVariantSet>,
    places: readonly Place[],
    upstream: TemplateInputs['upstream'],
    present: readonly Stored<PackageVariant>[],
  ): Promise<VariantPlan | SluiceError> {
    const { namespace } = set.metadata;
    const list = async () => {
      const { items } = await client.list(repositoryKind, namespace === undefined ? {} : { namespace });
      return new Map(items.map((one) => [one.metadata.name, one]));
    };
    let repositories = await list();
    for (;;) {
      const names = new Set<string>();
      const repository = (name: string) => repositories.get(names.add(name) && name);
      const inputs = { upstream, repository, repositories: () => repositories.keys() };
      const planned = await planVariants(set, places, inputs, present).catch((error: unknown) => {
        if (isSluiceError(error, 'LimitExceeded')) return error;
        throw error;
      });
      const added = read.replace(keyOf(set), names);
      if (added.length === 0) return planned;
      const later = await list();
      if (added.every((name) => sameValue(repositories.get(name)?.metadata, later.get(name)?.metadata))) return planned;
      repositories = later;
    }
  }

  async function unroll(set: Stored<PackageVariantSet>): Promise<Unrolled | SluiceError> {
    try {
      return await unrollTargets(set, client, kinds);
    } catch (error) {
      if (!isSluiceError(error, 'InvalidInput')) throw error;
      return error;
    }
  }

  async function report(
    set: Stored<PackageVariantSet>,
    problem: Problem | undefined,
    note: string | undefined,
    isOpening: boolean,
  ) {
    const message = shorten(problem?.message ?? '', MAX_MESSAGE_CHARACTERS);
    // A repository that cannot be opened has an event of its own.
    if (isOpening) events.forget(keyOf(set));
    else if (problem !== undefined) events.record(set, 'Warning', problem.reason, message);
    else events.forget(keyOf(set));
    const reconciled = 'package variants successfully reconciled';
    await writeStatus(client, packageVariantSetKind, set, {
      conditions: [
        problem?.isStalled === true
          ? { type: 'Stalled', status: 'True', reason: problem.reason, message }
          : { type: 'Stalled', status: 'False', reason: 'Valid', message: 'all validation checks passed' },
        problem !== undefined
          ? { type: 'Ready', status: 'False', reason: problem.reason, message }
          : (failureOf(set) ?? {
              ...{ type: 'Ready', status: 'True', reason: 'Reconciled' },
              message: note === undefined ? reconciled : shorten(`${reconciled}; ${note}`, MAX_MESSAGE_CHARACTERS),
            }),
      ],
      fields: { observedGeneration: set.metadata.generation, ...countsOf(set) },
      now: clock.now(),
    });
  }

  /** Writes what follows from the states of the variants. Returns false if the set has to be carried out again for it. */
  async function reportCounts(set: Stored<PackageVariantSet>): Promise<boolean> {
    const failure = failureOf(set);
    const failed = findCondition(set.status?.conditions, 'Ready')?.reason === VARIANTS_FAILING;
    if (!isCarriedOut(set) || (failed && failure === undefined)) return false;
    const conditions = failure === undefined ? [] : [failure];
    await writeStatus(client, packageVariantSetKind, set, { conditions, fields: countsOf(set), now: clock.now() });
    return true;
  }

  function failureOf({ metadata: { uid } }: Stored<PackageVariantSet>): NewCondition | undefined {
    const message = counts.failureOf(uid)?.slice(0, MAX_MESSAGE_CHARACTERS);
    return message === undefined ? undefined : { type: 'Ready', status: 'False', reason: VARIANTS_FAILING, message };
  }

  function countsOf({ metadata: { uid } }: Stored<PackageVariantSet>) {
    const variants = counts.of(uid);
    return variants === undefined ? {} : { variants };
  }
}

function holderOf(key: ObjectKey): KindHolder {
  return { ...key, kind: packageVariantSetKind.kind };
}

/** True if the last reconciliation had no problem, whether or not variants have. */
function isCarriedOut({ metadata, status }: Stored<PackageVariantSet>): boolean {
  const ready = findCondition(status?.conditions, 'Ready');
  if (ready === undefined || status?.observedGeneration !== metadata.generation) return false;
  return ready.status === 'True' || ready.reason === VARIANTS_FAILING;
}
