import type { Source } from '../../../src/controller/source.ts';
import type { PullRequest } from '../../../src/forge/forge.ts';
import type { RevisionIndex } from '../../../src/package/index/revision-index.ts';
import { latestIn } from '../../../src/package/plan/records/on-main.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { keyOf, type ObjectKey } from '../../../src/resource/object/object.ts';

/** Until what the host merged is looked for again, at most. The repository may be another one than that of the host, or have lost the commit. */
const MAX_DELAY_MS = 600_000;

/** A merge of the host that could not be published yet. */
export interface AwaitedMerge {
  /** What the last attempt depended on. */
  readonly of: string;
  /** Milliseconds of running time. */
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly delayMs: number;
  /** Since when its commit is there. */
  readonly foundMs: number | undefined;
}

export interface MergeToPublish {
  readonly pull: Pick<PullRequest, 'updatedAt'>;
  readonly evaluation: Pick<RevisionEvaluation, 'revision' | 'policy'>;
  readonly index: Pick<RevisionIndex, 'mainHead' | 'ofPackage'>;
}

/** Milliseconds until the next attempt to publish a merge; 0 if what it depends on has changed since the last one. */
export function untilNextAttempt(awaited: AwaitedMerge | undefined, of: string, nowMs: number): number {
  return awaited === undefined || awaited.of !== of ? 0 : Math.max(0, awaited.untilMs - nowMs);
}

/** After an attempt without success: the next one is after twice the time, unless something changes before. With its commit there it begins again. */
export function awaitMerge(
  before: AwaitedMerge | undefined,
  of: string,
  {
    firstMs,
    nowMs,
    foundMs,
  }: { readonly firstMs: number; readonly nowMs: number; readonly foundMs?: number | undefined },
): AwaitedMerge {
  const last = before?.foundMs === foundMs ? before : undefined;
  if (last !== undefined && nowMs < last.untilMs) return { ...last, of };
  const delayMs = last === undefined ? firstMs : Math.min(MAX_DELAY_MS, Math.max(firstMs, last.delayMs * 2));
  return { of, sinceMs: before?.sinceMs ?? nowMs, untilMs: nowMs + delayMs, delayMs, foundMs };
}

/** The proposals with pull requests. */
export interface MergedProposals {
  inRepository(repository: ObjectKey): Iterable<{
    readonly key: ObjectKey;
    readonly awaited?: AwaitedMerge;
    readonly pull: { readonly hasForeignFiles?: boolean };
  }>;
}

/**
 * Wakes for what depends on a main branch that has moved: the merges that it may have got, and branches with changes outside of their packages, which
 * it may have too since.
 */
export function movedMains(shown: MergedProposals): Source<ObjectKey> {
  return {
    start({ informer, enqueue }) {
      return informer(repositoryKind).addHandler((event) => {
        if (event.type !== 'update') return;
        const { object, old } = event;
        if (object.status?.gitCommitHash === old.status?.gitCommitHash) return;
        for (const { key, awaited, pull } of shown.inRepository(keyOf(object)))
          if (awaited !== undefined || pull.hasForeignFiles === true) enqueue(key);
      });
    },
  };
}

/** What an attempt to publish the merge of a proposal depends on. */
export function dependenciesOf({ pull, evaluation: { revision, policy }, index }: MergeToPublish): string {
  // It can be one that waits for an earlier one to be published.
  const published = latestIn(index.ofPackage(revision.key.package))?.name;
  return JSON.stringify([pull.updatedAt, revision.etag, policy.review?.publishOn, index.mainHead, published]);
}
