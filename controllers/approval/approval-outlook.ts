import { timestamp } from '../../src/foundation/time/clock.ts';
import type { Surroundings } from '../../src/package/api/explain/explainer.ts';
import type { Reason } from '../../src/package/model/revision/explanation.ts';
import {
  APPROVAL_DELAY_ANNOTATION,
  APPROVAL_POLICY_ANNOTATION,
  lifecycleAnnotation,
} from '../../src/package/model/revision/lifecycle-annotations.ts';
import { isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import { parseDuration } from '../../src/resource/object/duration.ts';
import { obstacleTo } from '../proposal/readiness.ts';

/** The behaviour of the approval controller for a revision with Nephio's annotations. */
export type ApprovalOutlook =
  /** It will act; `when` ends a sentence. */
  | { readonly acts: true; readonly named: string; readonly when: string }
  /** It would act, except for the reason in `blockedBy` or one that is reported elsewhere. */
  | { readonly acts: 'blocked'; readonly named: string; readonly blockedBy: string }
  /** It will not act in the current state. */
  | { readonly acts: false; readonly why: Reason };

/** Undefined if the revision has no approval annotation. `siblings` are the other revisions of the package. */
export function approvalOutlook(
  evaluation: RevisionEvaluation,
  siblings: readonly PackageRevision[],
  { disabled, now, running }: Surroundings,
): ApprovalOutlook | undefined {
  const policy = ownAnnotation(evaluation, APPROVAL_POLICY_ANNOTATION);
  if (policy === undefined) return undefined;
  const named = `${APPROVAL_POLICY_ANNOTATION}: ${policy}`;
  const never = (reason: string, message: string) => ({ acts: false, why: { reason, message } }) as const;
  if (disabled.includes('approval')) return never('Disabled', `${named}, but the approval controller is disabled`);
  if (policy !== 'initial' && policy !== 'always') {
    return never('InvalidPolicy', `${named} has no effect; use initial or always`);
  }
  const text = ownAnnotation(evaluation, APPROVAL_DELAY_ANNOTATION) ?? '0';
  const delay = parseDuration(text);
  if (delay === undefined) {
    const message = `${named} has no effect, since ${APPROVAL_DELAY_ANNOTATION} is ${JSON.stringify(text)}; use a duration such as 30s or 1h30m`;
    return never('InvalidDelay', message);
  }
  const [published] = siblings.filter(isPublished).sort((a, b) => b.revision - a.revision);
  if (policy === 'initial' && published !== undefined) {
    const message = `${named} is for the first revision only, and ${published.name} is ${published.lifecycle}`;
    return never('NotTheFirst', message);
  }
  if (evaluation.policy.forbidSelfApproval)
    return never('SelfApproval', `${named}, but a policy forbids self-approval, so a user has to approve it`);
  const isDraft = evaluation.revision.lifecycle === 'Draft';
  const obstacle = obstacleTo(evaluation, (gate) => !isDraft || !gate.approveOnly);
  if (obstacle !== undefined) return { acts: 'blocked', named, blockedBy: obstacle.message };
  const created = Date.parse(evaluation.record.createdAt ?? '') || evaluation.revision.tip.time;
  const due = created + delay;
  if (due > now) return { acts: true, named, when: `not before ${timestamp(due)}` };
  return { acts: true, named, when: running ? 'now' : 'as soon as "sluice up" runs' };
}

/** An annotation of the revision, else, where a policy enables Kptfile annotations, of its Kptfile. */
export function ownAnnotation({ record, revision, policy }: RevisionEvaluation, key: string): string | undefined {
  return lifecycleAnnotation(
    key,
    { own: record.annotations, kptfile: revision.kptfile?.metadata?.annotations },
    policy,
  );
}
