import { mapLimited } from '../../../src/foundation/concurrency/map-limited.ts';
import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import { shorten } from '../../../src/foundation/text/shorten.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import { MAX_SHARED_WRITES } from '../../../src/package/transaction/write-queue.ts';
import type { CallOptions, Client } from '../../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import type { ObjectKey } from '../../../src/resource/object/object.ts';
import { keyText } from '../../../src/resource/object/object.ts';
import { type GroupMember, RequestGroup } from '../../../src/resource/object/request-group.ts';
import { waitsForMerge } from '../../approval/explain-approval.ts';
import { type ApplicableResolvers, obstacleTo } from '../../proposal/readiness.ts';
import { RENDERER } from '../../revision/run-state.ts';

export interface ApproveOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'evaluate'>;
  readonly applicableResolvers?: ApplicableResolvers | undefined;
}

/** One intended approval. */
export interface Intent {
  readonly id: string;
  readonly key: ObjectKey;
  readonly commit: string;
}

/** Why a target was not approved: a rule refused it, or the attempt failed. Neither: it was, or it has changed. */
export interface Outcome {
  readonly id: string;
  readonly refusal?: string;
  readonly failure?: string;
}

/** Approvals in progress. Those of a wave in one repository share a commit, so many are better than few. */
export const MAX_APPROVALS = MAX_SHARED_WRITES;
const MAX_MESSAGE_CHARACTERS = 500;

/** Approves the recorded commits. The kernel decides; a refusal leaves the revision as it is. */
export async function approveTargets(
  intents: readonly Intent[],
  reasonOf: (id: string) => string,
  options: ApproveOptions,
  signal: AbortSignal,
): Promise<Outcome[]> {
  return mapLimited(grouped(intents, reasonOf), MAX_APPROVALS, async ({ item: intent, together }) => {
    try {
      if (signal.aborted) return { id: intent.id };
      const refusal = await approve(intent, { reason: reasonOf(intent.id), together }, options);
      return { id: intent.id, ...(refusal === undefined ? {} : { refusal: shorten(refusal, MAX_MESSAGE_CHARACTERS) }) };
    } catch (error) {
      // Deleted, or approved by another caller: the next observation shows it.
      if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Conflict')) return { id: intent.id };
      const message = shorten(messageOf(error), MAX_MESSAGE_CHARACTERS);
      return isSluiceError(error, 'Refused')
        ? { id: intent.id, refusal: message }
        : { id: intent.id, failure: message };
    } finally {
      together.end();
    }
  });
}

/**
 * Those of one repository with the same reason make one commit. They follow each other, since a group waits for all of its requests: all of a
 * group are in progress before a later one begins, where `MAX_APPROVALS` are at a time.
 */
export function grouped<Item extends { readonly id: string }>(
  items: readonly Item[],
  reasonOf: (id: string) => string,
): { readonly item: Item; readonly together: GroupMember }[] {
  const places = Map.groupBy(items, ({ id }) => `${id.slice(0, id.indexOf('/'))} ${reasonOf(id)}`);
  return [...places.values()].flatMap((all) => {
    const parts = Array.from({ length: Math.ceil(all.length / MAX_APPROVALS) }, (_, part) =>
      all.slice(part * MAX_APPROVALS, (part + 1) * MAX_APPROVALS),
    );
    return parts.flatMap((part) => {
      const { members } = new RequestGroup(part.length);
      return members.flatMap((together, at) => {
        const item = part[at];
        return item === undefined ? [] : { item, together };
      });
    });
  });
}

/**
 * Returns why it may not be approved; undefined if it was, or is not as it was recorded any more. `isReturn` for a copy of what was published
 * before, which is to stay as it is.
 */
export async function approve(
  { key, commit }: Pick<Intent, 'key' | 'commit'>,
  how: Pick<CallOptions, 'reason' | 'together'>,
  { client, store, applicableResolvers }: ApproveOptions,
  isReturn?: true,
): Promise<string | undefined> {
  // If anything changes after the object was read, the write below is a conflict.
  const object = await client.find(packageRevisionKind, key);
  if (object?.spec.lifecycle !== 'Proposed') return undefined;
  const evaluation = await store.evaluate(keyText(key));
  if (evaluation.revision.lifecycle !== 'Proposed' || evaluation.revision.commit !== commit) return undefined;
  const obstacle = isReturn === true ? undefined : obstacleTo(evaluation, () => true, applicableResolvers, needsReport);
  if (obstacle !== undefined) return obstacle.message;
  const published = { ...object, spec: { ...object.spec, lifecycle: 'Published' as const } };
  const made = await client.subResource('approval').update(packageRevisionKind, published, how);
  if (made.spec.lifecycle === 'Published') return undefined;
  const merge = waitsForMerge(await store.evaluate(keyText(key)));
  if (merge !== undefined) return `${merge.reason}: ${merge.message}`;
  return 'users have to approve it too; "sluice why" names them';
}

/** Of a package that was only rendered the controller of revisions reports nothing, unless it is marked for automatic steps. */
function needsReport(applicable: readonly string[]): boolean {
  return applicable.some((name) => name !== RENDERER);
}
