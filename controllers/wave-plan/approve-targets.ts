import { mapLimited } from '../../src/foundation/concurrency/map-limited.ts';
import { isSluiceError, messageOf } from '../../src/foundation/sluice-error.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import type { ObjectKey } from '../../src/resource/object/object.ts';
import { keyText } from '../../src/resource/object/object.ts';
import { waitsForMerge } from '../approval/explain-approval.ts';
import { type ApplicableResolvers, obstacleTo } from '../proposal/readiness.ts';
import { RENDERER } from '../revision/run-state.ts';

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

/** Approvals in progress. Those of one repository share its pushes, so many are better than few. */
const MAX_APPROVALS = 512;
const MAX_MESSAGE_CHARACTERS = 500;

/** Approves the recorded commits. The kernel decides; a refusal leaves the revision as it is. */
export async function approveTargets(
  intents: readonly Intent[],
  reasonOf: (id: string) => string,
  options: ApproveOptions,
  signal: AbortSignal,
): Promise<Outcome[]> {
  return mapLimited(intents, MAX_APPROVALS, async (intent) => {
    if (signal.aborted) return { id: intent.id };
    try {
      const refusal = await approve(intent, reasonOf(intent.id), options);
      return { id: intent.id, ...(refusal === undefined ? {} : { refusal: refusal.slice(0, MAX_MESSAGE_CHARACTERS) }) };
    } catch (error) {
      // Deleted, or approved by another caller: the next observation shows it.
      if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Conflict')) return { id: intent.id };
      const message = messageOf(error).slice(0, MAX_MESSAGE_CHARACTERS);
      return isSluiceError(error, 'Refused')
        ? { id: intent.id, refusal: message }
        : { id: intent.id, failure: message };
    }
  });
}

/**
 * Returns why it may not be approved; undefined if it was, or is not as it was recorded any more. `isReturn` for a copy of what was published
 * before, which is to stay as it is.
 */
export async function approve(
  { key, commit }: Pick<Intent, 'key' | 'commit'>,
  reason: string,
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
  const made = await client.subResource('approval').update(packageRevisionKind, published, { reason });
  if (made.spec.lifecycle === 'Published') return undefined;
  const merge = waitsForMerge(await store.evaluate(keyText(key)));
  if (merge !== undefined) return `${merge.reason}: ${merge.message}`;
  return 'users have to approve it too; "sluice why" names them';
}

/** Of a package that was only rendered the controller of revisions reports nothing, unless it is marked for automatic steps. */
function needsReport(applicable: readonly string[]): boolean {
  return applicable.some((name) => name !== RENDERER);
}
