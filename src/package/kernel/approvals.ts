import type { Actor } from '../../resource/object/request-context.ts';
import { PUSH_ACTOR } from '../model/gates/verdict.ts';
import type { ApprovalRule, Quorum } from '../model/policy/approval-rules.ts';
import { type EffectivePolicy, isActor } from '../model/policy/policy.ts';
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
  /** The quorums of all policies. */
  readonly quorums: readonly QuorumStatus[];
}

/** A quorum of a policy, and the approvals that count for it. */
export interface QuorumStatus {
  readonly policy: string;
  readonly quorum: Quorum;
  /** Different users; one more than the policy requires where an unknown pusher may be one of them. */
  readonly needed: number;
  readonly given: readonly Approval[];
  /** Users whose approvals do not count, whichever groups they are in. */
  readonly barred: ReadonlyMap<string, 'proposed' | 'changed'>;
}

/**
 * Determines the approvals that a revision has and needs. If users must not approve their own changes or proposals, a change or
 * proposal by an unknown pusher needs a second approver: then at least one of the two is not the author.
 */
export function approvalStatus(
  facts: ApprovalFacts,
  { forbidSelfApproval, alsoApprovedIn, approvalRules }: ApprovalPolicy,
): ApprovalStatus {
  const { content, proposedBy, contributors, approvals, approvalsElsewhere = [] } = facts;
  const quorums = approvalRules.flatMap((rule) => quorumStatus(rule, facts));
  if (!forbidSelfApproval) return { needed: 1, given: [], elsewhere: [], barred: [], isUnknown: false, quorums };
  const barred = new Map<string, 'proposed' | 'changed'>();
  for (const { name } of contributors) barred.set(name, 'changed');
  if (proposedBy !== undefined) barred.set(proposedBy, 'proposed');
  const counted = (all: readonly Approval[]): Approval[] => {
    const given = new Map<string, Approval>();
    for (const approval of all) {
      const { subject, face, withdrawn } = approval;
      if (withdrawn === undefined && approval.content === content && face !== 'controller' && !barred.has(subject))
        given.set(subject, approval);
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
    ...{ isUnknown, quorums },
  };
}

type ApprovalPolicy = Pick<EffectivePolicy, 'forbidSelfApproval' | 'alsoApprovedIn' | 'approvalRules'>;

function quorumStatus({ policy, quorum }: ApprovalRule, facts: ApprovalFacts): QuorumStatus[] {
  if (quorum === undefined) return [];
  const { content, proposedBy, contributors, approvals, approvalsElsewhere = [] } = facts;
  const { namespace, required, excludeProposer, excludeContributors } = quorum;
  const barred = new Map<string, 'proposed' | 'changed'>();
  if (excludeContributors) for (const { name } of contributors) barred.set(name, 'changed');
  if (excludeProposer && proposedBy !== undefined) barred.set(proposedBy, 'proposed');
  const here = namespace === undefined ? approvals : approvalsElsewhere.filter((one) => one.namespace === namespace);
  const given = new Map<string, Approval>();
  for (const approval of here) {
    const { subject, face, groups = [], withdrawn } = approval;
    if (withdrawn !== undefined || approval.content !== content || face === 'controller' || barred.has(subject))
      continue;
    if (isInQuorum(quorum, { name: subject, groups })) given.set(subject, approval);
  }
  const isUnknown =
    (excludeProposer && (proposedBy === undefined || proposedBy === PUSH_ACTOR)) ||
    (excludeContributors && contributors.some(({ name }) => name === PUSH_ACTOR));
  return [{ policy, quorum, needed: isUnknown ? required + 1 : required, given: [...given.values()], barred }];
}

function isInQuorum({ from }: Quorum, actor: Actor): boolean {
  return from.length === 0 || from.some((pattern) => isActor(pattern, actor));
}

/** Returns why the approval of a user does not count for a quorum, to follow the name of the user; undefined if it does. */
export function quorumProblem({ policy, quorum, barred }: QuorumStatus, actor: Actor): string | undefined {
  const because = barred.get(actor.name);
  if (because === 'proposed') return `proposed it, and policy ${policy} excludes the proposer`;
  if (because === 'changed') return `changed its content, and policy ${policy} excludes contributors`;
  if (isInQuorum(quorum, actor)) return undefined;
  return `is none of those whose approvals policy ${policy} counts (${quorum.from.join(', ')})`;
}

/** True if the recorded approvals are enough without one more. */
export function areEnough(
  status: ApprovalStatus,
  { forbidSelfApproval }: Pick<EffectivePolicy, 'forbidSelfApproval'>,
): boolean {
  const { needed, given, elsewhere, quorums } = status;
  const isMet = (one: { readonly given: readonly Approval[] }, count: number) => one.given.length >= count;
  if (forbidSelfApproval && !(isMet({ given }, needed) && elsewhere.every((one) => isMet(one, needed)))) return false;
  return quorums.every((one) => isMet(one, one.needed));
}
