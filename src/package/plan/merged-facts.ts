import type { Condition } from '../../../kptfile-schema/index.ts';
import type { PackageContent } from '../model/content/content.ts';
import { type IssuedCondition, issueVerdict, withoutPushes } from '../model/gates/verdict.ts';
import { groupsForQuorums } from '../model/policy/approval-rules.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import { REVIEW_ACTOR } from '../model/policy/review-policy.ts';
import { approvalsIn, type RevisionRecord } from '../model/record/record.ts';
import type { ReviewApproval } from '../model/revision/revision-state.ts';
import { permittedRendering, recordRendering } from './edit/render.ts';
import type { Rendering } from './ports/renderer.ts';

/** What decides about a package that a Git host merged, and cannot be in its Kptfile: its commit is the one of the host. */
export interface MergedFacts {
  /** The conditions that the pull request gave. */
  readonly conditions: readonly IssuedCondition[];
  /** The result of rendering the merged package; undefined if it was not rendered. */
  readonly rendering: Rendering | undefined;
  /** False if the content was written by users who may not push: conditions in the Kptfile do not count. */
  readonly mayIssue: boolean;
  /** False if the merge combined the package of the head with another one: conditions that a push has set are for neither. */
  readonly isOfHead: boolean;
  /** The types of conditions that earlier commits have set for another content. Default: none. */
  readonly earlier?: ReadonlySet<string>;
}

interface JudgedContent {
  readonly content: PackageContent;
  readonly policy: EffectivePolicy;
}

/** The record of a merged package, as a push left it, with what is known from outside. */
export function recordWithFacts(
  record: RevisionRecord,
  facts: MergedFacts,
  { content, policy, at }: JudgedContent & { readonly at: string },
): RevisionRecord {
  const pushed = withoutPushes(record, facts.isOfHead ? (facts.earlier ?? new Set()) : undefined);
  let next = facts.mayIssue ? pushed : { ...record, verdicts: [] };
  const rendering = permitted(record, facts, policy);
  if (rendering !== undefined) next = recordRendering(next, rendering, content, at, policy);
  const issuer = { actor: { name: REVIEW_ACTOR }, face: 'controller' } as const;
  for (const condition of facts.conditions) next = issueVerdict(next, condition, content, issuer, at);
  return next;
}

/** The record with the approvals in reviews of the present content. One that it has from the same user stays. */
export function recordWithReviews(
  record: RevisionRecord,
  approvals: readonly ReviewApproval[],
  {
    content,
    policy,
    namespace,
  }: {
    readonly content: Pick<PackageContent, 'content' | 'tree'>;
    readonly policy: EffectivePolicy;
    readonly namespace: string;
  },
): RevisionRecord {
  const given = approvalsIn(record, namespace).filter((one) => one.content === content.content);
  const added = approvals
    .filter(({ subject }) => !given.some((one) => one.subject === subject))
    .map(({ groups, ...approval }) => ({
      ...approval,
      ...groupsForQuorums(policy.approvalRules, groups),
      ...{ content: content.content, tree: content.tree, face: 'api', namespace },
    }));
  return added.length === 0 ? record : { ...record, approvals: [...(record.approvals ?? []), ...added] };
}

/** The conditions of a merged package: those of its Kptfile, and those that are known from outside. */
export function conditionsWithFacts(
  conditions: ReadonlyMap<string, Condition>,
  record: RevisionRecord,
  facts: MergedFacts,
  policy: EffectivePolicy,
): ReadonlyMap<string, Condition> {
  const all = new Map(conditions);
  const rendering = permitted(record, facts, policy);
  for (const type of rendering?.withdraw ?? []) all.delete(type);
  for (const condition of [...(rendering?.conditions ?? []), ...facts.conditions]) all.set(condition.type, condition);
  return all;
}

function permitted(record: RevisionRecord, { rendering }: MergedFacts, policy: EffectivePolicy): Rendering | undefined {
  return rendering && permittedRendering(rendering, policy, record.contributors ?? []).rendering;
}
