import type { z } from 'zod';

const NEXT = 'name more users, or a group as group:<name>, or require fewer approvals';

/** Reports a quorum of more users than its list has. The members of a group are not known, so that one of them can be enough. */
export function refuseUnreachable(
  required: number,
  from: readonly string[],
  context: Pick<z.core.$RefinementCtx, 'addIssue'>,
): void {
  const users = new Set(from).size;
  if (users === 0 || users >= required || from.some((one) => one.startsWith('group:'))) return;
  const message = `can never be met: from has ${users === 1 ? 'one user' : `${users} users`}; ${NEXT}`;
  context.addIssue({ code: 'custom', path: ['required'], message });
}

/** The same for `clusterRules`, where a user who is listed twice counts twice. */
export const REACHABLE_QUORUM = [
  "!has(self.from) || self.from.size() == 0 || self.from.exists(one, one.startsWith('group:')) || (has(self.required) ? self.required : 1) <= self.from.size()",
  `required can never be met by the users of from; ${NEXT}`,
] as const;
