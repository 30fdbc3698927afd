import { SluiceError } from '../../foundation/sluice-error.ts';
import { diskFull, isDiskFullMessage } from '../disk/disk-room.ts';
import type { RefUpdate } from '../git-repository.ts';
import { collisionError, expectedValue, lockedError, movedError } from './ref-updates.ts';

/**
 * Turns the message of `git update-ref` about a refused transaction into an error. The texts are those of Git 2.39 and later with
 * LC_ALL=C; an unknown one becomes an Internal error with the text.
 */
export function updateRefError(text: string, updates: readonly RefUpdate[]): SluiceError {
  const output = text.replace(/^fatal: (?:prepare: |commit: )?/, '').trim();
  const ref = /^cannot (?:lock|update) ref '([^']+)'/.exec(output)?.[1];
  const update = updates.find((candidate) => candidate.ref === ref);
  if (/[Uu]nable to create .*(?:\.lock|packed-refs\.new)': File exists/.test(output))
    return lockedError(ref ?? updates.find(({ type }) => type === 'delete')?.ref ?? updates[0]?.ref ?? 'a ref');
  if (isDiskFullMessage(output)) return diskFull('the repository', output.slice(0, 500));
  if (ref === undefined) return new SluiceError('Internal', `git update-ref failed: ${output.slice(0, 500)}`);

  const other =
    /'([^']+)' exists; cannot create/.exec(output)?.[1] ??
    /cannot process '[^']+' and '([^']+)' at the same time/.exec(output)?.[1] ??
    /refs under '([^']+)'/.exec(output)?.[1];
  if (other !== undefined) return collisionError(ref, other);

  if (output.includes('non-empty directory'))
    return new SluiceError('Corrupt', `${ref} cannot be written: ${output.slice(0, 500)}. Remove what is no ref there`);
  const expected = update === undefined ? null : expectedValue(update);
  const actual = /is at ([0-9a-f]{40}) but expected/.exec(output)?.[1];
  if (actual !== undefined) return movedError(ref, expected, actual);
  if (output.includes('reference already exists')) return movedError(ref, null);
  if (/reference broken|unable to read/.test(output))
    return new SluiceError('Corrupt', `${ref} is damaged: ${output.slice(0, 500)}. Restore or remove its file`);
  if (/unable to resolve reference|reference is missing/.test(output)) return movedError(ref, expected, null);
  const missing = /nonexistent object ([0-9a-f]{40})/.exec(output)?.[1];
  if (missing !== undefined)
    return new SluiceError('NotFound', `${ref} cannot point to ${missing}: there is no such object. Write it first`);
  const wrongType = /non-commit object ([0-9a-f]{40})/.exec(output)?.[1];
  if (wrongType !== undefined)
    return new SluiceError('InvalidInput', `${ref} cannot point to ${wrongType}: a branch needs a commit`);
  return new SluiceError('Internal', `git update-ref failed: ${output.slice(0, 500)}`);
}
