import type { Actor } from '../../../resource/object/request-context.ts';
import { type Approval, oneLine } from './record.ts';

export const NO_RIGHT = 'this user may not update packagerevisions/approval in this namespace any more';

/** The user of an approval, with all groups that are known. */
export function approverOfRecord({ subject: name, groups, allGroups = groups }: Approval): Actor {
  return allGroups === undefined ? { name } : { name, groups: [...allGroups] };
}

/** Why the approval of a user who has lost the right to approve does not count. */
export function describeWithdrawal({ subject, at }: Approval): string {
  return `the approval of ${oneLine(subject)} at ${at} does not count any more: ${NO_RIGHT}; another user has to approve it`;
}
