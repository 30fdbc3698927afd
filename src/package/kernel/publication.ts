import type { Condition } from '../../../kptfile-schema/index.ts';
import type { CommitFacts } from '../commit-message.ts';
import { CONTENT_INPUT } from '../inputs.ts';
import { type Verdict, verdictsByType } from '../record.ts';

/** What a published tag and the commit it points to say. */
export interface PublicationFacts {
  /** Number of parents of the commit. */
  readonly parents: number;
  /** First line of its message. */
  readonly subject: string;
  readonly commit: CommitFacts;
  /** Folder of the package in the tree, the repository's directory included, as the tag names it. */
  readonly path: string;
  /** Last segment of the tag, `v<N>` for what the kernel publishes. */
  readonly version: string;
  /** Gates and effective conditions of the Kptfile at the commit. */
  readonly gates: readonly string[];
  readonly conditions: ReadonlyMap<string, Condition>;
  /** Content digest of the package at the commit; undefined if nobody computed it. */
  readonly content?: string | undefined;
  /** Content digest of the package at the second parent, the draft that was approved; undefined if nobody computed it. */
  readonly draftContent?: string | undefined;
}

/**
 * - `NotAnApprovalCommit`: the commit is no approval commit of anybody;
 * - `PorchApproval`: Porch approved it, and Porch does not ask for gates;
 * - `OtherRevision`: an approval, of another package or number than the tag names;
 * - `NoApprovalRecord`: no readable record of what was approved;
 * - `GateUnmet`: a gate of the Kptfile that the record does not show open for the published content;
 * - `ContentChanged`: the content is not what was approved.
 */
export type PublicationFlaw =
  | 'NotAnApprovalCommit'
  | 'PorchApproval'
  | 'OtherRevision'
  | 'NoApprovalRecord'
  | 'GateUnmet'
  | 'ContentChanged';

export type PublicationJudgement =
  /** `warning`: it was published with closed gates, which the repository did not enforce. */
  | { readonly inBand: true; readonly warning?: string }
  /** `message` is one sentence for people. */
  | { readonly inBand: false; readonly reason: PublicationFlaw; readonly message: string };

/**
 * Whether a published tag has the form that only an approval by the kernel gives it. It judges what stands in Git, which
 * whoever may push to the main branch can also write; protection of that branch and signed commits are what keeps them out.
 */
export function judgePublication(facts: PublicationFacts): PublicationJudgement {
  const what = `${facts.path}/${facts.version}`;
  const { commit } = facts;
  if (facts.parents !== 2 || commit.action !== 'approve') {
    if (isPorchApproval(facts)) {
      return flawed('PorchApproval', `${what} was approved by Porch, which does not ask whether gates are open`);
    }
    return flawed('NotAnApprovalCommit', `${what} points to a commit that is no approval`);
  }
  const published = commit.annotations.filter((annotation) => annotation.revision !== undefined);
  const [named] = published;
  if (named === undefined || published.length > 1 || !names(named, facts)) {
    const others = published.map((annotation) => `${annotation.package}/${annotation.revision}`).join(', ');
    return flawed('OtherRevision', `${what} points to an approval of ${others === '' ? 'nothing' : others}`);
  }
  const record = commit.record;
  if (record === undefined) return flawed('NoApprovalRecord', `the approval of ${what} carries no readable record`);
  if (facts.content !== undefined && facts.content !== record.content) {
    return flawed('ContentChanged', `the content of ${what} is not the content that was approved`);
  }
  if (facts.draftContent !== undefined && facts.draftContent !== record.content) {
    return flawed('ContentChanged', `the draft that ${what} was approved from has other content than was approved`);
  }
  const closed = facts.gates.filter((type) => !isOpen(type, facts.conditions, record.verdicts, record.content));
  if (record.gatesBypassed === true) {
    const list = closed.length === 0 ? '' : `: ${closed.join(', ')}`;
    return { inBand: true, warning: `${what} was published with closed gates, which were not enforced${list}` };
  }
  if (closed.length > 0) {
    return flawed(
      'GateUnmet',
      `the record in the approval of ${what} does not show these gates open: ${closed.join(', ')}`,
    );
  }
  return { inBand: true };
}

function isPorchApproval(facts: PublicationFacts): boolean {
  return (
    facts.parents === 2 &&
    facts.commit.action === undefined &&
    facts.commit.record === undefined &&
    facts.subject.startsWith('Approving package revision ') &&
    facts.commit.annotations.some((annotation) => names(annotation, facts))
  );
}

/** Porch writes the bare number, and wrote `v<N>` in older versions. */
function names(annotation: { readonly package: string; readonly revision?: string }, facts: PublicationFacts): boolean {
  if (annotation.package !== facts.path || annotation.revision === undefined) return false;
  return `v${annotation.revision.replace(/^v/, '')}` === facts.version;
}

/** Inputs other than the content cannot be checked from the commit alone; the kernel did so when it approved. */
function isOpen(
  type: string,
  conditions: ReadonlyMap<string, Condition>,
  verdicts: readonly Verdict[],
  content: string,
): boolean {
  const verdict = verdictsByType(verdicts).get(type);
  if (verdict?.status !== 'True' || conditions.get(type)?.status !== 'True') return false;
  if (Object.keys(verdict.inputs).length === 0) return false;
  const boundTo = Object.hasOwn(verdict.inputs, CONTENT_INPUT) ? verdict.inputs[CONTENT_INPUT] : undefined;
  return boundTo === undefined || boundTo === content;
}

function flawed(reason: PublicationFlaw, message: string): PublicationJudgement {
  return { inBand: false, reason, message };
}
