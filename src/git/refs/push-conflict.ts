import { SluiceError } from '../../foundation/sluice-error.ts';
import { isDiskFullMessage } from '../disk/disk-room.ts';
import { PushRefusedError, RefConflictError } from '../errors.ts';
import type { Ref, RefUpdate } from '../git-repository.ts';
import { ancestors, collisionError, expectedValue, lockedError, movedError } from './ref-updates.ts';

export interface PushRejection {
  readonly ref: string;
  readonly reason: string;
}

/** The reason for every ref of an atomic push that failed because of another one. */
const FOLLOWS = /^atomic (?:push|transaction)/;
/** The local git compared with what the server advertised. */
const STALE = /^(?:stale info|fetch first|non-fast-forward|already exists|needs force)$/;
/** The server failed without a reason: another writer was faster between advertising and updating, or names collide. */
const UNEXPLAINED = /^(?:failed to (?:update|lock|delete)|cannot lock|unable to|reference already exists|transaction)/;

/** True if the rejections of an atomic push do not name the reason: then the refs of the remote show it. */
export function isUnexplained(rejections: readonly PushRejection[]): boolean {
  const cause = causeOf(rejections);
  return cause === undefined || UNEXPLAINED.test(cause.reason);
}

/** The first update whose expectation the refs of a remote do not meet, as a conflict; undefined if all are met. */
export function compareWithRemote(updates: readonly RefUpdate[], refs: readonly Ref[]): RefConflictError | undefined {
  const values = new Map(refs.map(({ name, oid }) => [name, oid]));
  for (const update of updates) {
    const actual = values.get(update.ref) ?? null;
    if (actual !== expectedValue(update)) return movedError(update.ref, expectedValue(update), actual);
  }
  for (const { type, ref } of updates) {
    if (type !== 'create') continue;
    const other =
      ancestors(ref).find((name) => values.has(name)) ?? refs.find(({ name }) => name.startsWith(`${ref}/`))?.name;
    if (other !== undefined) return collisionError(ref, other);
  }
  return undefined;
}

/** How the messages about rejected pushes begin. */
const REJECTED = 'the remote rejected ';

/**
 * Returns the error for the rejections of an atomic push: a conflict, a rule of the server, or its full disk. `words` is the additional
 * output of the server. If the server gives no reason and its refs are as expected, another writer held a lock on one of them.
 */
export function rejectionError(
  rejections: readonly PushRejection[],
  updates: readonly RefUpdate[],
  words: string,
): RefConflictError | PushRefusedError | SluiceError {
  const cause = causeOf(rejections);
  const update = updates.find(({ ref }) => ref === cause?.ref);
  if (cause !== undefined && update !== undefined && STALE.test(cause.reason))
    return movedError(cause.ref, expectedValue(update));
  const held = /cannot lock ref '([^']+)': Unable to create [^:]*\.lock': File exists/.exec(words)?.[1];
  if (held !== undefined && isUnexplained(rejections)) return lockedError(held);
  // A hook that rejects the push as a whole reports the same reason for every ref: then it named none.
  const same = rejections.filter(({ reason }) => reason === cause?.reason);
  const ref = same.length === 1 ? cause?.ref : protectedBranch(words, updates);
  const reason = cause?.reason ?? rejections[0]?.reason ?? 'the server named no reason';
  const message = `${REJECTED}${ref ?? 'the push'}: ${reason}${words === '' ? '' : `. It reports: ${words}`}`;
  if (isDiskFullMessage(`${reason} ${words}`))
    return new SluiceError(
      'Unavailable',
      `${message}. The disk of the Git host is full: free space there; it is tried again`,
    );
  if (isUnexplained(rejections)) return new RefConflictError({ ref, kind: 'locked' }, `${message}. Try again`);
  return new PushRefusedError(
    { ref },
    `${message}. A rule of the Git host forbids it: allow it there (branch protection, hooks, rights of the account), then try again`,
  );
}

/** Whether the message of an error is about a push that a rule of the remote refuses. */
export function isAboutRefusedPush(message: string): boolean {
  return message.startsWith(REJECTED);
}

/** Gitea and Forgejo reject the push as a whole, and name the branch that they protect. */
function protectedBranch(words: string, updates: readonly RefUpdate[]): string | undefined {
  const name = /\bprotected branch '?([^\s':]+)/.exec(words)?.[1];
  const ref = `refs/heads/${name?.replace(/^refs\/heads\//, '')}`;
  return updates.find((update) => update.ref === ref)?.ref;
}

/**
 * The error for an atomic push that was applied in part; undefined if no ref changed. Servers do that: Git's
 * own leaves refs that it hides out of the transaction.
 */
export function partialPushError(
  url: string,
  changed: readonly string[],
  rejections: readonly PushRejection[],
): SluiceError | undefined {
  const [first] = rejections;
  if (first === undefined || changed.length === 0) return undefined;
  const more = changed.length > 1 ? ` and ${changed.length - 1} more` : '';
  return new SluiceError(
    'Unsupported',
    `remote ${url} applied an atomic push in part: it changed ${changed[0]}${more} and rejected ` +
      `${first.ref} (${first.reason}). Permit both there, and check its refs`,
    { details: { changed } },
  );
}

function causeOf(rejections: readonly PushRejection[]): PushRejection | undefined {
  return rejections.find(({ reason }) => !FOLLOWS.test(reason));
}
