import { PUSH_ACTOR } from '../model/gates/verdict.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import type { Approval, Contributor } from '../model/record/record.ts';

/** What determines who may approve a revision and who has. */
export interface ApprovalFacts {
  /** Content digest of the package. */
  readonly content: string;
  /** Who last proposed it; undefined if that is not known, as after a plain push. */
  readonly proposedBy: string | undefined;
  readonly contributors: readonly Contributor[];
  readonly approvals: readonly Approval[];
}

export interface ApprovalStatus {
  /** Distinct people who have to approve. */
  readonly needed: number;
  /** Approvals that count: of this content, by people who may approve it. */
  readonly given: readonly Approval[];
  /** Actors who must not approve it, and why; `push` stands for a push by an unknown person. */
  readonly barred: readonly { readonly name: string; readonly because: 'proposed' | 'changed' }[];
  /** The content, or the proposal, came by the push of a person who is not known. */
  readonly isUnknown: boolean;
}

/**
 * Which approvals a revision has and needs. Where people must not approve what they changed or proposed, a change or a proposal by a plain
 * push, whose author is not known, needs a second approver: one of the two is then another person than the author.
 */
export function approvalStatus(
  { content, proposedBy, contributors, approvals }: ApprovalFacts,
  { forbidSelfApproval }: Pick<EffectivePolicy, 'forbidSelfApproval'>,
): ApprovalStatus {
  if (!forbidSelfApproval) return { needed: 1, given: [], barred: [], isUnknown: false };
  const barred = new Map<string, 'proposed' | 'changed'>();
  for (const { name } of contributors) barred.set(name, 'changed');
  if (proposedBy !== undefined) barred.set(proposedBy, 'proposed');
  const given = new Map<string, Approval>();
  for (const approval of approvals) {
    const { subject, face } = approval;
    if (approval.content === content && face !== 'controller' && !barred.has(subject)) given.set(subject, approval);
  }
  const isUnknown =
    proposedBy === undefined || proposedBy === PUSH_ACTOR || contributors.some(({ name }) => name === PUSH_ACTOR);
  return {
    needed: isUnknown ? 2 : 1,
    given: [...given.values()],
    barred: [...barred].map(([name, because]) => ({ name, because })),
    isUnknown,
  };
}
