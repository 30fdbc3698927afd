import { closingOf } from '../comments/closing-comment.ts';
import type { Closing } from '../forge.ts';
import type { Timeline } from './gitea-schemas.ts';

/** At most between both entries of a pull request that Gitea closes because a push removed its branch, also under load. */
const REMOVAL_MS = 5000;

/** The last end in the conversation of a pull request or issue, of which the entries are in the order of the beginning. */
export function closingIn(entries: readonly Timeline[]): Closing | undefined {
  const at = entries.findLastIndex(({ type }) => type === 'close');
  const by = entries[at]?.user?.login;
  if (by === undefined) return undefined;
  const comments = entries.filter(({ type }) => type === 'comment');
  const reopened = entries.findLast(({ type }) => type === 'reopen')?.created_at;
  const closing = closingOf(
    by,
    comments.map(({ user, created_at: written, body }) => ({ author: user?.login, at: written, body })),
    reopened,
  );
  return isByRemoval(entries.slice(at)) ? { ...closing, isByRemoval: true } : closing;
}

/** A user who closes one, and removes its branch then, leaves the same entries, with more time between them. */
function isByRemoval([close, ...later]: readonly Timeline[]): boolean {
  return later.some(({ type, user, created_at: at }) => {
    const isSameUser = user?.login === close?.user?.login;
    return type === 'delete_branch' && isSameUser && timeOf(at) - timeOf(close?.created_at) <= REMOVAL_MS;
  });
}

function timeOf(at: string | null | undefined): number {
  return Date.parse(at ?? '');
}
