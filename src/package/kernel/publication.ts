import type { Oid } from '../../git/git-repository.ts';
import type { CommitFacts } from '../model/record/commit-message.ts';
import type { TrustFlaw } from '../trust/distrust.ts';

/** The content of a published tag and of its commit. */
export interface PublicationFacts {
  /** The commit itself. */
  readonly oid: Oid;
  /** Parents of the commit. */
  readonly parents: readonly Oid[];
  /** First line of its message. */
  readonly subject: string;
  /** Of the message of an annotated tag where that carries a statement, otherwise of the commit. */
  readonly commit: CommitFacts;
  /** Id of the repository of the tag. */
  readonly repository: string;
  /** The branch that publications are on, as it was registered. */
  readonly branch: string;
  /** Folder of the package in the tree, the repository's directory included, as the tag names it. */
  readonly path: string;
  /** Last segment of the tag, `v<N>` for what the kernel publishes. */
  readonly version: string;
  /** Tree of the package in the commit. */
  readonly tree: Oid | undefined;
}

/**
 * Flaws in the statement of a publication:
 * - `NotAnApproval`: neither the commit nor the tag carries a statement or an approval of any tool;
 * - `PorchApproval`: Porch approved it, and Porch evaluates no gates;
 * - `UnsignedApproval`: an approval without a statement, as earlier versions of Sluice wrote it;
 * - `OtherRevision`: a statement for another package or number than the tag names;
 * - `OtherRepository`: a statement for another repository;
 * - `OtherBranch`: approved onto another branch, under the policies of another registration;
 * - `OtherCommit`: a copy of the statement of another commit;
 * - `ContentChanged`: the package is not the one that was approved;
 * - `GateUnmet`: a gate that the statement lists as required was not open;
 * - `NotApproved`: the Git host merged it without the approvals that policies required;
 * - `ChangesRequested`: the Git host merged it although reviewers requested changes.
 * - `ForeignFiles`: the Git host merged other files together with it.
 *
 * Flaws in its signer are those of `TrustFlaw`; `NotOnMain`: the commit was not on the main branch when it was first seen.
 */
export type PublicationFlaw =
  | 'NotAnApproval'
  | 'PorchApproval'
  | 'UnsignedApproval'
  | 'OtherRevision'
  | 'OtherRepository'
  | 'OtherBranch'
  | 'OtherCommit'
  | 'ContentChanged'
  | 'GateUnmet'
  | 'NotApproved'
  | 'ChangesRequested'
  | 'ForeignFiles'
  | 'NotOnMain'
  | TrustFlaw;

export type PublicationEvaluation =
  /**
   * `warning`: it was published with closed gates, because the repository did not enforce them or a policy permitted it.
   */
  | { readonly inBand: true; readonly warning?: string }
  /** `message` is one human-readable sentence. */
  | { readonly inBand: false; readonly reason: PublicationFlaw; readonly message: string };

/**
 * Evaluates whether the statement of a publication matches the published content. Every user who may push can write a statement;
 * whether it counts depends on its signature, which `RepositoryTrust` evaluates. The gates are those in the statement: later policies
 * and Kptfiles do not affect a publication.
 */
export function evaluatePublication(facts: PublicationFacts): PublicationEvaluation {
  const what = `${facts.path}/${facts.version}`;
  const signed = facts.commit.statement;
  if (signed === undefined) return evaluateUnsigned(facts, what);
  const { statement } = signed;
  if (statement.repository !== facts.repository) {
    return flawed('OtherRepository', `${what} carries a statement for another repository (${statement.repository})`);
  }
  if (statement.package !== facts.path || `v${statement.revision}` !== facts.version) {
    return flawed('OtherRevision', `${what} carries a statement for ${statement.package}/v${statement.revision}`);
  }
  if (statement.branch !== facts.branch) {
    return flawed('OtherBranch', `${what} was approved onto the branch ${statement.branch}, not onto ${facts.branch}`);
  }
  if (statement.tree !== facts.tree) {
    return flawed('ContentChanged', `the content of ${what} is not the content that was approved`);
  }
  if (statement.onto !== facts.parents[0]) {
    return flawed(
      'OtherCommit',
      `${what} carries a copy of a statement that was made for a commit on top of ${statement.onto}`,
    );
  }
  if (statement.sharedCommit !== undefined && statement.sharedCommit !== facts.oid) {
    return flawed(
      'OtherCommit',
      `${what} carries a copy of a statement that was made for the commit ${statement.sharedCommit}`,
    );
  }
  const { gates = [], gatesBypassed, breakGlass, rulesBypassed = [], mergeBypass } = statement.record;
  const closed = gates.flatMap(({ type, state }) => (state === 'Open' ? [] : type));
  if (closed.length > 0 && breakGlass === undefined && gatesBypassed !== true) {
    const merged = mergeBypass === undefined ? '' : ', with which the Git host merged it';
    return flawed('GateUnmet', `the statement of ${what} lists closed gates${merged}: ${closed.join(', ')}`);
  }
  if (mergeBypass?.notApproved !== undefined) {
    return flawed(
      'NotApproved',
      `the Git host merged ${what} without the required approvals, by its statement: ${mergeBypass.notApproved}`,
    );
  }
  if (mergeBypass?.objection !== undefined) {
    return flawed(
      'ChangesRequested',
      `the Git host merged ${what} although changes were requested, by its statement, by ${mergeBypass.objection}`,
    );
  }
  if (mergeBypass?.foreign !== undefined) {
    return flawed('ForeignFiles', `the Git host merged ${what} together with ${mergeBypass.foreign}, by its statement`);
  }
  if (breakGlass !== undefined && rulesBypassed.length > 0) {
    const { by, reason } = breakGlass;
    const also = closed.length === 0 ? '' : `, and with closed gates: ${closed.join(', ')}`;
    return {
      inBand: true,
      warning: `${what} was published by ${by}, who may break the glass (${reason}), while rules blocked it: ${rulesBypassed.join('; ')}${also}`,
    };
  }
  if (closed.length === 0) return { inBand: true };
  if (breakGlass !== undefined) {
    const { by, reason } = breakGlass;
    return {
      inBand: true,
      warning: `${what} was published with closed gates by ${by}, who may break the glass (${reason}): ${closed.join(', ')}`,
    };
  }
  return {
    inBand: true,
    warning: `${what} was published with closed gates, which were not enforced: ${closed.join(', ')}`,
  };
}

function evaluateUnsigned(facts: PublicationFacts, what: string): PublicationEvaluation {
  const { unread } = facts.commit;
  if (unread !== undefined)
    return flawed('NotAnApproval', `the message of the commit of ${what} was not read: ${unread}`);
  if (isPorchApproval(facts)) {
    return flawed('PorchApproval', `${what} was approved by Porch, which does not evaluate gates`);
  }
  if (facts.parents.length === 2 && facts.commit.action === 'approve' && facts.commit.record !== undefined) {
    return flawed(
      'UnsignedApproval',
      `the approval of ${what} is not signed; "sluice repo adopt" lists it for adoption`,
    );
  }
  return flawed('NotAnApproval', `${what} points to a commit without a signed approval`);
}

function isPorchApproval(facts: PublicationFacts): boolean {
  return (
    facts.parents.length === 2 &&
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

function flawed(reason: PublicationFlaw, message: string): PublicationEvaluation {
  return { inBand: false, reason, message };
}
