import type { BlockingRule } from '../model/revision/revision-state.ts';
import type { ApprovalStatus, QuorumStatus } from './approvals.ts';

/**
 * The approvals by users that policies require and that are missing, as rules that keep a revision from being published. An approval meets them,
 * so that they refuse none; see `blockingRules` for those that do. `since`: when it was proposed, RFC 3339, if known. `counted`: what the approvals of
 * the status are, of which reviews may not be recorded.
 */
export function missingApprovals(
  status: ApprovalStatus,
  forbidSelfApproval: boolean,
  since: string | undefined,
  counted = 'recorded',
): BlockingRule[] {
  const waiting = since === undefined ? {} : { since };
  const independent = forbidSelfApproval ? independentApprovals(status, counted) : [];
  const quorums = status.quorums.flatMap((one) => missingOfQuorum(one, counted));
  return [...independent, ...quorums].map((rule) => ({ ...rule, ...waiting }));
}

function independentApprovals(
  { needed, given, elsewhere, barred, isUnknown }: ApprovalStatus,
  counted: string,
): BlockingRule[] {
  const others = barred.map(({ name }) => name).join(', ');
  const rule = { rule: 'SelfApproval' } as const;
  const here: BlockingRule[] = [];
  if (given.length < needed) {
    const why = isUnknown
      ? 'content or the proposal was pushed with git by an unknown user'
      : 'a policy forbids self-approval';
    const by = given.map(({ subject, at }) => `${subject} at ${at}`).join(', ');
    const recorded = `${given.length} of ${needed} approvals ${counted}${by === '' ? '' : ` (${by})`}`;
    const must = needed === 1 ? 'another user must approve it' : `${needed} users must approve it`;
    const without = others === '' ? '' : `, without ${others}`;
    here.push({
      ...rule,
      message: `${recorded}; ${must}, since ${why}`,
      resolvedBy: `users who may approve${without}`,
    });
  }
  return [
    ...here,
    ...elsewhere
      .filter((one) => one.given.length < needed)
      .map((one) => ({
        ...rule,
        message: `${one.given.length} of ${needed} approvals recorded in the namespace ${one.namespace}, which has registered the same branch, and whose policies require them by users who may approve there`,
        resolvedBy: `users who may approve in the namespace ${one.namespace}`,
      })),
  ];
}

/** What a policy requires of users, who they are, and who has approved. */
function missingOfQuorum({ policy, quorum, needed, given }: QuorumStatus, counted: string): BlockingRule[] {
  if (given.length >= needed) return [];
  const by = given.map(({ subject, at }) => `${subject} at ${at}`).join(', ');
  const from = quorum.from.length === 0 ? 'all users who may approve' : quorum.from.join(', ');
  const where = quorum.namespace === undefined ? '' : ` in the namespace ${quorum.namespace}`;
  const more =
    needed > quorum.required ? '; one more than the policy requires, since a push was made by an unknown user' : '';
  const excluded = [
    ...(quorum.excludeProposer ? ['the proposer'] : []),
    ...(quorum.excludeContributors ? ['contributors'] : []),
  ];
  const without = excluded.length === 0 ? '' : `, without ${excluded.join(' and ')}`;
  return [
    {
      ...{ rule: 'Quorum', policy },
      message: `policy ${policy} requires ${needed} approvals${where}, of which ${given.length} are ${counted}${by === '' ? '' : ` (${by})`}${more}`,
      resolvedBy: `${from}${without}`,
    },
  ];
}
