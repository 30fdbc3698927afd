import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Oid, Ref, RefUpdate } from '../../git-repository.ts';
import { compareWithRemote } from '../../refs/push-conflict.ts';
import { expectedValue, newValue } from '../../refs/ref-updates.ts';
import type { RequestFailure } from './request-failure.ts';

/** The refs of the remote differ from those that a push expects; nothing was sent. */
export class NotAsExpectedError extends SluiceError {
  constructor(url: string) {
    const details: RequestFailure = { mayBeApplied: false };
    super('Conflict', `the refs of remote ${url} are not as expected`, { details });
  }
}

/**
 * True for a push that a server could apply in part: Git's own leaves what it lacks objects for out of the transaction, and
 * removes a ref with any value, if it lacks the object that it is to have.
 */
export function mustListFirst(updates: readonly RefUpdate[]): boolean {
  return updates.some(({ type }) => type === 'delete');
}

/** True if refs have the values that updates expect, and some of them the `taken` ones, so that the remote has what is below. */
export function isAsExpected(updates: readonly RefUpdate[], taken: ReadonlySet<Oid>, refs: readonly Ref[]): boolean {
  const values = new Map(refs.map(({ name, oid }) => [name, oid]));
  const oids = new Set(values.values());
  return (
    updates.every((update) => (values.get(update.ref) ?? null) === expectedValue(update)) &&
    [...taken].every((oid) => oids.has(oid))
  );
}

/**
 * Returns the remaining updates, given the refs of a remote: a ref with its new value is only verified. Throws
 * RefConflictError if another ref is not as expected.
 */
export function remainingUpdates(updates: readonly RefUpdate[], refs: readonly Ref[]): 'done' | readonly RefUpdate[] {
  const values = new Map(refs.map(({ name, oid }) => [name, oid]));
  const isDone = (update: RefUpdate) => 'new' in update && values.get(update.ref) === update.new;
  const isOver = (update: RefUpdate) =>
    isDone(update) || (values.get(update.ref) ?? null) === newValue(update) || update.type === 'verify';
  if (updates.some(isDone) && updates.every(isOver)) return 'done';
  const conflict = compareWithRemote(
    updates.filter((update) => !isDone(update)),
    refs,
  );
  if (conflict !== undefined) throw conflict;
  return updates.map((update) =>
    isDone(update) && 'new' in update ? { type: 'verify', ref: update.ref, old: update.new } : update,
  );
}
