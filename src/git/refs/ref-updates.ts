import { inSlices } from '../../foundation/concurrency/in-slices.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { RefConflictError } from '../errors.ts';
import type { Oid, Ref, RefChange, RefUpdate } from '../git-repository.ts';
import { checkOid } from '../objects/object-id.ts';
import { checkRefName } from '../ref-name.ts';
import { sortedByName } from './sorted-by-name.ts';

/**
 * Checks the form of a set of ref updates: names, ids, no ref twice (InvalidInput), and that no two collide as `a/b` and `a/b/c` do
 * (RefConflictError; Git refuses such a pair even where one of them is deleted). It does not read the repository.
 * In slices: a fetch may change hundreds of thousands of refs.
 */
export async function checkRefUpdates(updates: readonly RefUpdate[]): Promise<void> {
  const names = new Set<string>();
  await inSlices(updates, (update) => {
    checkRefName(update.ref);
    if (names.has(update.ref))
      throw new SluiceError('InvalidInput', `${update.ref} is changed twice in one transaction`);
    names.add(update.ref);
    if ('new' in update) checkOid(update.new, `new value of ${update.ref}`);
    if ('old' in update && update.old !== null) checkOid(update.old, `expected value of ${update.ref}`);
  });
  await inSlices(names, (name) => {
    const parent = ancestors(name).find((ancestor) => names.has(ancestor));
    if (parent !== undefined) throw collisionError(name, parent);
  });
}

/** The value that an update expects: null for no ref. */
export function expectedValue(update: RefUpdate): Oid | null {
  return update.type === 'create' ? null : update.old;
}

/** The value after an update: null for no ref. */
export function newValue(update: RefUpdate): Oid | null {
  if (update.type === 'delete') return null;
  return update.type === 'verify' ? update.old : update.new;
}

/** The names that cannot exist beside `name`: `refs/heads/a` and `refs/heads/a/b` for `refs/heads/a/b/c`. */
export function ancestors(name: string): string[] {
  const segments = name.split('/');
  return segments.slice(2, -1).map((_, index) => segments.slice(0, index + 3).join('/'));
}

export function collisionError(name: string, other: string): RefConflictError {
  return new RefConflictError(
    { ref: name, kind: 'collision' },
    `${name} cannot exist beside ${other}: one name is a folder of the other. Choose another name or remove ${other} first`,
  );
}

export function movedError(ref: string, expected: Oid | null, actual?: Oid | null): RefConflictError {
  const found = actual === undefined ? 'is not' : actual === null ? 'does not exist, not' : `is at ${actual}, not`;
  const wanted = expected === null ? 'absent' : `at ${expected}`;
  return new RefConflictError(
    { ref, kind: 'moved' },
    `${ref} ${found} ${wanted} as expected: another writer changed it. Read it again, then retry`,
  );
}

export function lockedError(ref: string): RefConflictError {
  return new RefConflictError({ ref, kind: 'locked' }, `${ref} is locked by another writer. Try again`);
}

/** Returns the differences between two listings, sorted by name. */
export async function changesBetween(before: readonly Ref[], after: readonly Ref[]): Promise<RefChange[]> {
  const old = new Map<string, Oid>();
  await inSlices(before, ({ name, oid }) => old.set(name, oid));
  const found: RefChange[] = [];
  await inSlices(after, ({ name, oid }) => {
    const previous = old.get(name);
    old.delete(name);
    if (previous !== oid) found.push({ name, before: previous, after: oid });
  });
  await inSlices(old, ([name, oid]) => found.push({ name, before: oid, after: undefined }));
  return await sortedByName(found);
}
