import { SluiceError } from '../../foundation/sluice-error.ts';
import { PushRefusedError, RefConflictError } from '../errors.ts';
import type { Ref, RefUpdate } from '../git-repository.ts';
import { ancestors, collision, expectedValue, locked, moved } from './ref-updates.ts';

export interface PushRejection {
  readonly ref: string;
  readonly reason: string;
}

/** Said of every ref when another one of an atomic push was the reason. */
const FOLLOWS = /^atomic (?:push|transaction)/;
/** The local git compared with what the server advertised. */
const STALE = /^(?:stale info|fetch first|non-fast-forward|already exists|needs force)$/;
/** The server tried and could not, without saying why: it was overtaken between advertising and updating, or names collide. */
const UNEXPLAINED = /^(?:failed to (?:update|lock|delete)|cannot lock|unable to|reference already exists|transaction)/;

/** True if the rejections of an atomic push do not say what the reason was: then the refs of the remote do. */
export function isUnexplained(rejections: readonly PushRejection[]): boolean {
  const cause = causeOf(rejections);
  return cause === undefined || UNEXPLAINED.test(cause.reason);
}

/** The first update whose expectation the refs of a remote do not meet, as a conflict; undefined if all are met. */
export function compareWithRemote(updates: readonly RefUpdate[], refs: readonly Ref[]): RefConflictError | undefined {
  const values = new Map(refs.map(({ name, oid }) => [name, oid]));
  for (const update of updates) {
    const actual = values.get(update.ref) ?? null;
    if (actual !== expectedValue(update)) return moved(update.ref, expectedValue(update), actual);
  }
  for (const { type, ref } of updates) {
    if (type !== 'create') continue;
    const other =
      ancestors(ref).find((name) => values.has(name)) ?? refs.find(({ name }) => name.startsWith(`${ref}/`))?.name;
    if (other !== undefined) return collision(ref, other);
  }
  return undefined;
}

/**
 * What the rejections of an atomic push come to: a conflict, or a rule of the server. `words` is what the server said beside them. Where
 * it gives no reason and its refs are as expected, another writer held one of them a moment ago.
 */
export function refusal(
  rejections: readonly PushRejection[],
  updates: readonly RefUpdate[],
  words: string,
): RefConflictError | PushRefusedError {
  const cause = causeOf(rejections);
  const update = updates.find(({ ref }) => ref === cause?.ref);
  if (cause !== undefined && update !== undefined && STALE.test(cause.reason))
    return moved(cause.ref, expectedValue(update));
  const held = /cannot lock ref '([^']+)': Unable to create [^:]*\.lock': File exists/.exec(words)?.[1];
  if (held !== undefined && isUnexplained(rejections)) return locked(held);
  // A hook that judges the push as a whole gives every ref the same reason: then it named none.
  const same = rejections.filter(({ reason }) => reason === cause?.reason);
  const ref = same.length === 1 ? cause?.ref : undefined;
  const reason = cause?.reason ?? rejections[0]?.reason ?? 'no reason given';
  const message = `the remote refuses ${ref ?? 'the push'}: ${reason}${words === '' ? '' : `. It says: ${words}`}`;
  if (isUnexplained(rejections)) return new RefConflictError({ ref, kind: 'locked' }, `${message}. Try again`);
  return new PushRefusedError(
    { ref },
    `${message}. A rule of the Git host forbids it: allow it there (branch protection, hooks, rights of the account), then try again`,
  );
}

/**
 * The error for a push that was to be all or nothing and was carried out in part; undefined if no ref changed. Servers do that: Git's
 * own leaves refs that it hides out of the transaction.
 */
export function carriedOutInPart(
  url: string,
  changed: readonly string[],
  rejections: readonly PushRejection[],
): SluiceError | undefined {
  const [first] = rejections;
  if (first === undefined || changed.length === 0) return undefined;
  const more = changed.length > 1 ? ` and ${changed.length - 1} more` : '';
  return new SluiceError(
    'Unsupported',
    `remote ${url} carried out a push in part that was to be all or nothing: it changed ${changed[0]}${more} and refused ` +
      `${first.ref} (${first.reason}). Let it take both, and look at what it has now`,
    { details: { changed } },
  );
}

function causeOf(rejections: readonly PushRejection[]): PushRejection | undefined {
  return rejections.find(({ reason }) => !FOLLOWS.test(reason));
}
