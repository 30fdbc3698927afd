import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { writeStatus } from '../../src/controller/write-status.ts';
import { isSluiceError, unlessMissing } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { type PackageVariantSet, packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { keyOf, type Stored } from '../../src/resource/object/object.ts';
import type { Registry } from '../../src/resource/storage/registry.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { selectUpstream } from '../package-variant/plan-variant.ts';
import { listProblems, planVariants } from './plan-variants.ts';
import { setSources } from './set-sources.ts';
import { unrollTargets } from './unroll-targets.ts';
import { VariantCounts } from './variant-counts.ts';

const PACKAGE_VARIANT_SET_ACTOR = 'controller:package-variant-set';

export interface PackageVariantSetOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'list' | 'openingError'>;
  /** The kinds whose objects can be targets. */
  readonly kinds: Pick<Registry, 'kindOf' | 'onChange'>;
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

  return {
    name: 'package-variant-set',
    sources: [...setSources(kinds).map((source) => counts.waking(source)), counts.source],
    // One at a time: of two sets with one downstream package, the second one finds the variant of the first.
    maxConcurrentReconciles: 1,
    async reconcile(key, { signal }): Promise<ReconcileResult | undefined> {
      const onlyCounts = counts.take(key);
      const set = await client.find(packageVariantSetKind, key);
      if (set === undefined) return void events.forget(key);
      // Its variants have it as their owner: the garbage collection deletes them.
      if (set.metadata.deletionTimestamp !== undefined) return undefined;
      if (onlyCounts && isCarriedOut(set)) {
        await writeStatus(client, packageVariantSetKind, set, { fields: countsOf(set), now: clock.now() });
        return undefined;
      }
      const problem = await ensure(set, signal);
      await report(set, problem);
      return problem === undefined ? undefined : { requeueAfter: RETRY_MS, reason: problem.message };
    },
  };

  async function ensure(set: Stored<PackageVariantSet>, signal: AbortSignal): Promise<Problem | undefined> {
    const { namespace = '' } = set.metadata;
    const { upstream: wanted, maxTargets } = set.spec;
    const stalled = (reason: string, message: string): Problem => ({ reason, message, isStalled: true });
    const id = `${namespace}/${wanted.repo}`;
    const opening = store.openingError(id);
    if (opening !== undefined) return stalled('UpstreamNotFound', opening.message);
    const found = selectUpstream(wanted, store.list({ repository: id, package: wanted.package }));
    if ('problem' in found) return stalled('UpstreamNotFound', found.problem);
    // Its labels and annotations as clients see them.
    const upstream = await client.get(packageRevisionKind, { namespace, name: found.revision.name });
    const places = await unroll(set);
    if ('reason' in places) return places;
    if (places.length > maxTargets)
      return stalled(
        'TooManyTargets',
        `the set has ${places.length} targets, spec.maxTargets permits ${maxTargets}; nothing was changed: raise it, or select fewer`,
      );
    const repositories = new Map(
      (await client.list(repositoryKind, { namespace })).items.map((one) => [one.metadata.name, one]),
    );
    const { items: present } = await client.list(packageVariantKind, { namespace });
    const inputs = { upstream, repository: (name: string) => repositories.get(name) };
    const { create, update, remove, problems, claims } = planVariants(set, places, inputs, present);
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
    const counts = Object.entries({ created: create, updated: update, deleted: remove }).filter(
      ([, some]) => some.length > 0,
    );
    if (counts.length > 0)
      recorder.record(
        set,
        'Normal',
        'Reconciled',
        `variants: ${counts.map(([what, some]) => `${some.length} ${what}`).join(', ')}`,
      );
    if (problems.length > 0)
      return {
        reason: 'UnexpectedError',
        message: `${listProblems(problems)}; no variant is deleted meanwhile`,
        isStalled: false,
      };
    if (claims.length > 0) return { reason: 'DownstreamClaimed', message: listProblems(claims), isStalled: false };
    return undefined;
  }

  async function unroll(set: Stored<PackageVariantSet>) {
    try {
      return await unrollTargets(set, client, kinds);
    } catch (error) {
      if (!isSluiceError(error, 'InvalidInput')) throw error;
      return { reason: 'NoMatchingTargets', message: error.message, isStalled: true };
    }
  }

  async function report(set: Stored<PackageVariantSet>, problem: Problem | undefined): Promise<void> {
    const message = problem?.message.slice(0, MAX_MESSAGE_CHARACTERS) ?? '';
    if (problem !== undefined) events.record(set, 'Warning', problem.reason, message);
    else events.forget(keyOf(set));
    await writeStatus(client, packageVariantSetKind, set, {
      conditions: [
        problem?.isStalled === true
          ? { type: 'Stalled', status: 'True', reason: problem.reason, message }
          : { type: 'Stalled', status: 'False', reason: 'Valid', message: 'all validation checks passed' },
        problem === undefined
          ? { type: 'Ready', status: 'True', reason: 'Reconciled', message: 'package variants successfully reconciled' }
          : { type: 'Ready', status: 'False', reason: problem.reason, message },
      ],
      fields: { observedGeneration: set.metadata.generation, ...countsOf(set) },
      now: clock.now(),
    });
  }

  function countsOf({ metadata: { uid } }: Stored<PackageVariantSet>) {
    const variants = counts.of(uid);
    return variants === undefined ? {} : { variants };
  }
}

/** True if the last reconciliation had no problem, so that no other attempt is due. */
function isCarriedOut({ metadata, status }: Stored<PackageVariantSet>): boolean {
  return (
    status?.observedGeneration === metadata.generation && findCondition(status?.conditions, 'Ready')?.status === 'True'
  );
}
