import type { PullRequest } from '../../../src/forge/forge.ts';
import { publishedRecordOf } from '../../../src/package/model/record/commit-message.ts';
import type { LifecycleStep } from '../../../src/package/model/record/record.ts';
import { isPublished, type PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';

/** What the end of a pull request has rejected is proposed again if that is opened again within this time. */
export const REOPEN_MS = 7 * 86_400_000;

/** The step that ended the last proposal of a revision, if none follows it. */
export function endStepOf(revision: Revision): LifecycleStep | undefined {
  const steps = isPublished(revision) ? publishedRecordOf(revision.tip.facts)?.steps : revision.record?.steps;
  const last = steps?.findLast(({ action }) => ['propose', 'approve', 'reject'].includes(action));
  return steps?.some(({ action }) => action === 'propose') === true && last?.action !== 'propose' ? last : undefined;
}

/**
 * Whether the host merged a pull request after its proposal was rejected, as where it had left that open: the end was not reported as that of a merge.
 * The clocks are those of the host and of Sluice, with whole seconds.
 */
export function isMergedAfter({ state, closedAt = '' }: PullRequest, step: LifecycleStep | undefined): boolean {
  return state === 'merged' && step?.action === 'reject' && Date.parse(closedAt) >= Date.parse(step.at);
}
