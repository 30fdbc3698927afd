import { RefConflictError } from '../errors.ts';
import type { Ref, RefUpdate } from '../git-repository.ts';
import { ancestors, collision, expectedValue, moved } from '../ref-updates.ts';
import { cleanText } from './remote-url.ts';

interface Rejection {
  readonly ref: string;
  readonly reason: string;
}

/** Said of every ref when another one of an atomic push was the reason. */
const FOLLOWS = /^atomic (?:push|transaction)/;
/** The local git compared with what the server advertised. */
const STALE = /^(?:stale info|fetch first|non-fast-forward|already exists|needs force)$/;
/** The server tried and could not, without saying why: it was overtaken between advertising and updating, or names collide. */
const UNEXPLAINED = /^(?:failed to (?:update|lock|delete)|cannot lock|unable to|reference already exists|transaction)/;

/** The refs that `git push --porcelain` reports as rejected. */
export function parsePushReport(stdout: string): Rejection[] {
  const rejections: Rejection[] = [];
  for (const line of stdout.split('\n')) {
    const [flag, refs, summary] = line.split('\t');
    if (flag !== '!' || refs === undefined || summary === undefined) continue;
    rejections.push({
      ref: refs.slice(refs.indexOf(':') + 1),
      reason: cleanText(/\((.*)\)\s*$/s.exec(summary)?.[1] ?? summary),
    });
  }
  return rejections;
}

/**
 * The conflict behind the rejections of an atomic push, in which nothing changed. `listRemote` is asked only where the server does
 * not say which ref was the reason.
 */
export async function pushConflict(
  rejections: readonly Rejection[],
  updates: readonly RefUpdate[],
  stderr: string,
  listRemote: () => Promise<readonly Ref[]>,
): Promise<RefConflictError> {
  const cause = rejections.find(({ reason }) => !FOLLOWS.test(reason));
  const update = updates.find(({ ref }) => ref === cause?.ref);
  if (cause !== undefined && update !== undefined && STALE.test(cause.reason))
    return moved(cause.ref, expectedValue(update));
  if (cause === undefined || UNEXPLAINED.test(cause.reason)) {
    const conflict = compareWithRemote(updates, await listRemote());
    if (conflict !== undefined) return conflict;
  }
  // A hook that judges the push as a whole gives every ref the same reason: then it named none.
  const same = rejections.filter(({ reason }) => reason === cause?.reason);
  const ref = same.length === 1 ? cause?.ref : undefined;
  const reason = cause?.reason ?? rejections[0]?.reason ?? 'no reason given';
  const words = remoteWords(stderr);
  return new RefConflictError(
    { ref, kind: 'refused' },
    `the remote refuses ${ref ?? 'the push'}: ${reason}${words === '' ? '' : `. It says: ${words}`}`,
  );
}

function compareWithRemote(updates: readonly RefUpdate[], refs: readonly Ref[]): RefConflictError | undefined {
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

/** What the server itself wrote: the lines that git marks with `remote:`. */
function remoteWords(stderr: string): string {
  const lines = [...stderr.matchAll(/^remote: ?(.*)$/gm)].map(([, line]) => cleanText(line ?? ''));
  return lines
    .filter((line) => line !== '')
    .join(' / ')
    .slice(0, 2000);
}
