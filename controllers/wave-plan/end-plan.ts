import type { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { writeStatus } from '../../src/controller/write-status.ts';
import { mapLimited } from '../../src/foundation/concurrency/map-limited.ts';
import { unlessMissing } from '../../src/foundation/sluice-error.ts';
import { counted, listed } from '../../src/foundation/text/counted.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import {
  DELETION_HELD,
  WAVE_PLAN_FINALIZER,
  type WavePlan,
  wavePlanKind,
} from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { type WaveTarget, waveTargetKind } from '../../src/resource/kinds/sluice/wave/wave-target.ts';
import { DEFAULT_NAMESPACE, keyOf, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { isActive } from '../../src/rollout/wave/plan-selection.ts';
import type { BlueprintStore } from './blueprint-versions.ts';
import { heldAmong } from './holding-plan.ts';
import { listTargets } from './plan-records.ts';
import { readSelection, unreadRepositories } from './select-revisions.ts';

export interface EndPlanOptions {
  readonly client: Client;
  readonly store: BlueprintStore & Pick<RevisionStore, 'findRepository'>;
  readonly clock: Clock;
  readonly recorder: Pick<EventRecorder, 'record'>;
}

/** Milliseconds until the hold of a deleted plan is examined again without an event. */
const CHECK_MS = 30_000;
const MAX_NAMED = 3;
const MAX_CONCURRENT_WRITES = 16;

/** Adds the finalizer by which a deleted plan keeps its hold. */
export async function holdPlan(plan: Stored<WavePlan>, client: Client): Promise<Stored<WavePlan>> {
  const { finalizers = [] } = plan.metadata;
  if (finalizers.includes(WAVE_PLAN_FINALIZER)) return plan;
  const metadata = { ...plan.metadata, finalizers: [...finalizers, WAVE_PLAN_FINALIZER] };
  return client.update(wavePlanKind, { ...plan, metadata });
}

/**
 * Ends a deleted plan. The right to delete plans is no right to approve: without the plan, a policy with automatic approval would publish at
 * once what has not had its wave. So a plan in progress keeps its hold until it holds nothing any more, or a user who may approve aborts it.
 */
export async function endPlan(
  plan: Stored<WavePlan>,
  { client, store, clock, recorder }: EndPlanOptions,
): Promise<ReconcileResult | undefined> {
  const { finalizers = [], name } = plan.metadata;
  const what = isActive(plan) ? await heldBy(plan, { client, store }) : undefined;
  if (what === undefined) {
    await releaseTargets(keyOf(plan), client);
    // Other finalizers keep it, as that of a deletion in the foreground does until its targets are gone.
    const isKept = finalizers.some((one) => one !== WAVE_PLAN_FINALIZER);
    const message = 'it is deleted, approves nothing any more, and holds nothing';
    const left = isKept ? await writeDeleted(plan, { reason: 'Deleting', message }, { client, clock }) : plan;
    // Otherwise a user removed it.
    if (finalizers.includes(WAVE_PLAN_FINALIZER)) await client.update(wavePlanKind, withoutFinalizer(left));
    return undefined;
  }
  const message = `it is deleted, approves nothing any more, and holds ${what} until users approve or reject them, or a user who may approve ends the hold with "sluice wave abort ${name}"`;
  await writeDeleted(plan, { reason: DELETION_HELD, message }, { client, clock });
  if (plan.status?.message !== message) recorder.record(plan, 'Warning', DELETION_HELD, message);
  return { requeueAfter: CHECK_MS, reason: 'a deleted plan holds revisions' };
}

/** Reports what a deleted plan waits for. What it did stays recorded. */
function writeDeleted(
  plan: Stored<WavePlan>,
  { reason, message }: { readonly reason: string; readonly message: string },
  { client, clock }: Pick<EndPlanOptions, 'client' | 'clock'>,
): Promise<Stored<WavePlan>> {
  const { phase, wave } = plan.status ?? {};
  return writeStatus(client, wavePlanKind, plan, {
    conditions: [{ type: 'Ready', status: 'False', reason, message }],
    now: clock.now(),
    fields: {
      message,
      ...(phase === undefined ? { phase: 'Pending' as const } : {}),
      ...(wave === undefined ? {} : { wave: undefined }),
    },
  });
}

/** Lets the targets of a plan that is over or gone be deleted, which is the work of the garbage collection. */
export async function releaseTargets(plan: ObjectKey, client: Client): Promise<void> {
  await mapLimited(await listTargets(plan, client), MAX_CONCURRENT_WRITES, (target) => releaseTarget(target, client));
}

/** Deletes targets of an earlier plan with the name of a plan, which were kept without an owner. */
export async function deleteTargets(targets: readonly Stored<WaveTarget>[], client: Client): Promise<void> {
  await mapLimited(targets, MAX_CONCURRENT_WRITES, async (target) => {
    await releaseTarget(target, client);
    await unlessMissing(client.delete(waveTargetKind, keyOf(target)));
  });
}

async function releaseTarget(target: Stored<WaveTarget>, client: Client): Promise<void> {
  if (target.metadata.finalizers?.includes(WAVE_PLAN_FINALIZER) !== true) return;
  await unlessMissing(client.update(waveTargetKind, withoutFinalizer(target)));
}

function withoutFinalizer<T extends Stored<WavePlan> | Stored<WaveTarget>>(object: T): T {
  const finalizers = object.metadata.finalizers?.filter((one) => one !== WAVE_PLAN_FINALIZER) ?? [];
  return { ...object, metadata: { ...object.metadata, finalizers } };
}

/** What would be free without the plan; undefined for nothing. */
async function heldBy(
  plan: Stored<WavePlan>,
  { client, store }: Pick<EndPlanOptions, 'client' | 'store'>,
): Promise<string | undefined> {
  const { namespace = DEFAULT_NAMESPACE } = plan.metadata;
  const selection = await readSelection(plan, { client, store });
  const unread = selection.repositories.filter((name) => store.findRepository(`${namespace}/${name}`) === undefined);
  if (unread.length > 0) return `what is proposed in ${listed(unread, MAX_NAMED)}, which cannot be read`;
  const { blueprint } = unreadRepositories(plan, selection, store);
  if (blueprint !== undefined) return `what was made from its blueprint in ${blueprint}, which cannot be read`;
  const held = await heldAmong(store.list({ lifecycle: 'Proposed' }), plan, selection, client);
  if (held.length === 0) return undefined;
  const names = held.map((revision) => revision.name);
  return `${counted(names.length, 'proposed revision')} (${listed(names, MAX_NAMED)})`;
}
