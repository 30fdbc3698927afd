import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { GitRepository, Oid } from '../../../git/git-repository.ts';
import { parseRecord, type ReadRecord } from './record.ts';

/** Returns the record in a commit; undefined if it is not a record: any object can be pushed to a record ref. */
export async function readRecordAt(git: GitRepository, oid: Oid): Promise<ReadRecord | undefined> {
  try {
    return parseRecord((await git.readCommit(oid)).message);
  } catch (error) {
    if (isSluiceError(error, 'Corrupt') || isSluiceError(error, 'NotFound')) return undefined;
    throw error;
  }
}
