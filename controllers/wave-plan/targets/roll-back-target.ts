import { gatesOf } from '../../../kptfile-schema/index.ts';
import { revertReason } from '../../../src/delivery/dora/revert-reason.ts';
import { revertSource } from '../../../src/delivery/rollback/revert-source.ts';
import { mapLimited } from '../../../src/foundation/concurrency/map-limited.ts';
import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import {
  type DeliveryTarget,
  deliveryTargetKind,
} from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { keyOf } from '../../../src/resource/object/object.ts';
import type { GroupMember } from '../../../src/resource/object/request-group.ts';
import type { TargetObservation } from '../../../src/rollout/wave/observation.ts';
import type { TargetRecord } from '../../../src/rollout/wave/plan-state.ts';
import { type ApproveOptions, approve, grouped, MAX_APPROVALS } from './approve-targets.ts';

type Rollback =
  | NonNullable<TargetObservation['rollback']>
  /** A draft was made of this revision, although no delivery of an earlier one is recorded. */
  | { readonly waits: string; readonly undelivered: number };
type IdentifiedRollback = readonly [id: string, Rollback];

/** Targets that an event names. */
const MAX_NAMED_TARGETS = 10;

/** The targets of the namespace, from which a revision may have gone back before. */
async function readDeliveryTargets({ client }: ApproveOptions, namespace: string): Promise<readonly DeliveryTarget[]> {
  return (await client.list(deliveryTargetKind, { namespace })).items;
}

/** Takes the next step of each rollback; those of one repository are published in one commit. Returns where each is, by the id of its target. */
export async function rollBackTargets(
  back: readonly TargetRecord[],
  namespace: string,
  plan: string,
  options: ApproveOptions,
  signal: AbortSignal,
): Promise<readonly IdentifiedRollback[]> {
  if (back.length === 0) return [];
  const targets = await readDeliveryTargets(options, namespace);
  // The reasons differ in the numbers of revisions.
  return mapLimited(
    grouped(back, () => ''),
    MAX_APPROVALS,
    async ({ item, together }) => {
      try {
        signal.throwIfAborted();
        return [item.id, await rollBackTarget(item, { namespace, targets, plan, together }, options)] as const;
      } finally {
        together.end();
      }
    },
  );
}

/** What an event reports of drafts that were made although no delivery is recorded; undefined if there is none. */
export function undeliveredText(rollbacks: readonly IdentifiedRollback[]): string | undefined {
  const texts = rollbacks.flatMap(([id, rollback]) =>
    typeof rollback === 'object' && 'undelivered' in rollback ? `${id} to v${rollback.undelivered}` : [],
  );
  if (texts.length === 0) return undefined;
  const named = texts.slice(0, MAX_NAMED_TARGETS).join(', ');
  const more = texts.length > MAX_NAMED_TARGETS ? ` and ${texts.length - MAX_NAMED_TARGETS} more` : '';
  return `no delivery of an earlier revision is recorded, so the highest one that did not fail on a target is published again: ${named}${more}`;
}

interface RollbackContext {
  readonly namespace: string;
  readonly targets: readonly DeliveryTarget[];
  readonly plan: string;
  readonly together: GroupMember;
}

/**
 * Takes the next step of a rollback: the content of the revision that was delivered before becomes a draft in a workspace that follows from
 * the number of the reverted one, which is proposed and approved. A repeated call continues where the last one ended.
 */
async function rollBackTarget(
  { id, published = 0, previous }: TargetRecord,
  { namespace, targets, plan, together }: RollbackContext,
  options: ApproveOptions,
): Promise<Rollback> {
  const { client } = options;
  const slash = id.indexOf('/');
  const [repository, path] = [id.slice(0, slash), id.slice(slash + 1)];
  const fieldSelector = `spec.repository=${repository},spec.packageName=${path}`;
  const { items } = await client.list(packageRevisionKind, { namespace, fieldSelector });
  const revisions = items.toSorted((a, b) => (a.spec.revision ?? 0) - (b.spec.revision ?? 0));
  const reverted = revisions.find(({ spec }) => spec.revision === published);
  if (reverted === undefined) return { impossible: `v${published} does not exist any more` };
  const workspaceName = `rollback-v${published}`;
  const own = revisions.find(({ spec }) => spec.workspaceName === workspaceName);
  if ((own?.spec.revision ?? 0) > 0) return 'Done';
  const later = revisions.find(({ spec }) => (spec.revision ?? 0) > published);
  if (later !== undefined) return { impossible: `v${later.spec.revision} was published since` };
  const { revision: source, isDelivered } = revertSource(reverted, revisions, targets, previous) ?? {};
  if (source === undefined) return { impossible: `no published revision precedes v${published}` };
  const more = `rollback of WavePlan ${plan}`;
  const reason = revertReason(published, source.spec.revision ?? 0, more);
  try {
    if (own === undefined) {
      const edit = { sourceRef: { name: source.metadata.name } };
      const spec = { packageName: path, repository, workspaceName, lifecycle: 'Draft' as const };
      const tasks = [{ type: 'edit' as const, edit }];
      await client.create(packageRevisionKind, { metadata: { namespace }, spec: { ...spec, tasks } }, { reason });
      const waits = 'its draft was created';
      return isDelivered === true ? { waits } : { waits, undelivered: source.spec.revision ?? 0 };
    }
    const evaluation = await options.store.evaluate(`${namespace}/${own.metadata.name}`);
    const original = await options.store.evaluate(`${namespace}/${source.metadata.name}`);
    // Users may edit drafts, and create one with this name: only what was published before is published by a rollback.
    if (!isCopyOf(evaluation, original))
      return {
        waits: `${own.metadata.name} waits: its content or its gates are not those of v${source.spec.revision}, so it is not the copy of this rollback; delete it`,
      };
    if (own.spec.lifecycle === 'Draft') {
      await client.update(packageRevisionKind, { ...own, spec: { ...own.spec, lifecycle: 'Proposed' } }, { reason });
      return { waits: 'its draft was proposed' };
    }
    const { commit } = evaluation.revision;
    const refusal = await approve({ key: keyOf(own), commit }, { reason, together }, options, true);
    return refusal === undefined
      ? { waits: 'it is being published' }
      : { waits: `${own.metadata.name} waits: ${refusal}` };
  } catch (error) {
    if (isSluiceError(error, 'Conflict') || isSluiceError(error, 'AlreadyExists')) return { waits: 'it has changed' };
    if (!isSluiceError(error, 'Refused')) return { waits: messageOf(error) };
    return { waits: `${own?.metadata.name ?? workspaceName} waits: ${error.message}` };
  }
}

function isCopyOf(copy: RevisionEvaluation, original: RevisionEvaluation): boolean {
  const gates = ({ revision: { kptfile } }: RevisionEvaluation) => (kptfile === undefined ? [] : gatesOf(kptfile));
  const kept = new Set(gates(copy));
  return copy.content.content === original.content.content && gates(original).every((type) => kept.has(type));
}
