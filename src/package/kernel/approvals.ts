import { PUSH_ACTOR } from '../model/gates/verdict.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import type { Approval, Contributor } from '../model/record/record.ts';

/** The facts that determine who may approve a revision and who has. */
export interface ApprovalFacts {
  /** Content digest of the package. */
  readonly content: string;
  /** User who last proposed it; undefined if unknown, as after a plain push. */
  readonly proposedBy: string | undefined;
  readonly contributors: readonly Contributor[];
  readonly approvals: readonly Approval[];
  /** Approvals that were given in other namespaces. */
  readonly approvalsElsewhere?: readonly Approval[] | undefined;
}

export interface ApprovalStatus {
  /** Distinct people who have to approve, here and in each namespace of `elsewhere`. */
  readonly needed: number;
  /** Approvals that count: of this content, by users who may approve it. */
  readonly given: readonly Approval[];
  /** Namespaces whose users have to approve as well, with the approvals there that count. */
  readonly elsewhere: readonly { readonly namespace: string; readonly given: readonly Approval[] }[];
  /** Actors who must not approve it, and why; `push` is a push by an unknown person. */
  readonly barred: readonly { readonly name: string; readonly because: 'proposed' | 'changed' }[];
  /** True if an unknown pusher changed the content or proposed the revision. */
  readonly isUnknown: boolean;
}

/**
 * Determines the approvals that a revision has and needs. If users must not approve their own changes or proposals, a change or
 * proposal by an unknown pusher needs a second approver: then at least one of the two is not the author.
 */
export function approvalStatus(
  { content, proposedBy, contributors, approvals, approvalsElsewhere = [] }: ApprovalFacts,
  { forbidSelfApproval, alsoApprovedIn }: Pick<EffectivePolicy, 'forbidSelfApproval' | 'alsoApprovedIn'>,
): ApprovalStatus {
  if (!forbidSelfApproval) return { needed: 1, given: [], elsewhere: [], barred: [], isUnknown: false };
  const barred = new Map<string, 'proposed' | 'changed'>();
  for (const { name } of contributors) barred.set(name, 'changed');
  if (proposedBy !== undefined) barred.set(proposedBy, 'proposed');
  const counted = (all: readonly Approval[]): Approval[] => {
    const given = new Map<string, Approval>();
    for (const approval of all) {
      const { subject, face } = approval;
      if (approval.content === content && face !== 'controller' && !barred.has(subject)) given.set(subject, approval);
    }
    return [...given.values()];
  };
  const isUnknown =
    proposedBy === undefined || proposedBy === PUSH_ACTOR || contributors.some(({ name }) => name === PUSH_ACTOR);
  return {
    needed: isUnknown ? 2 : 1,
    given: counted(approvals),
    elsewhere: alsoApprovedIn.map((namespace) => ({
      namespace,
      given: counted(approvalsElsewhere.filter((one) => one.namespace === namespace)),
    })),
    barred: [...barred].map(([name, because]) => ({ name, because })),
    isUnknown,
  };
}
