import type { Condition } from '../../../kptfile-schema/index.ts';
import type { PackageContent } from '../model/content/content.ts';
import { type IssuedCondition, issueVerdict } from '../model/gates/verdict.ts';
import { groupsForQuorums } from '../model/policy/approval-rules.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import { REVIEW_ACTOR } from '../model/policy/review-policy.ts';
import type { RevisionRecord } from '../model/record/record.ts';
import { permittedRendering, recordRendering } from './edit/render.ts';
import type { Rendering } from './ports/renderer.ts';

/** What decides about a package that a Git host merged, and cannot be in its Kptfile: its commit is the one of the host. */
export interface MergedFacts {
  /** The conditions that the pull request gave. */
  readonly conditions: readonly IssuedCondition[];
  /** The result of rendering the merged package; undefined if it was not rendered. */
  readonly rendering: Rendering | undefined;
  /** Users who approved this content in reviews, besides the actor of the request. */
  readonly approvals: readonly {
    readonly subject: string;
    readonly groups?: readonly string[];
    readonly at: string;
    readonly evidence: string;
  }[];
  /** False if the content was written by users who may not push: conditions in the Kptfile do not count. */
  readonly mayIssue: boolean;
}

export interface FactsContext {
  readonly content: PackageContent;
  readonly policy: EffectivePolicy;
  /** RFC 3339. */
  readonly at: string;
  readonly namespace: string;
}

/** The record of a merged package, as a push left it, with what is known from outside. */
export function recordWithFacts(
  record: RevisionRecord,
  facts: MergedFacts,
  { content, policy, at, namespace }: FactsContext,
): RevisionRecord {
  let next = facts.mayIssue ? record : { ...record, verdicts: [] };
  const rendering = permitted(record, facts, policy);
  if (rendering !== undefined) next = recordRendering(next, rendering, content, at, policy);
  const issuer = { actor: { name: REVIEW_ACTOR }, face: 'controller' } as const;
  for (const condition of facts.conditions) next = issueVerdict(next, condition, content, issuer, at);
  const approvals = facts.approvals.map(({ groups, ...given }) => ({
    ...given,
    ...groupsForQuorums(policy.approvalRules, groups),
    ...{ content: content.content, tree: content.tree, face: 'api', namespace },
  }));
  return approvals.length === 0 ? next : { ...next, approvals };
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
