import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { GitRepository, Oid } from '../../../git/git-repository.ts';
import { parseRecord, type ReadRecord } from './record.ts';

/** The record in a commit; undefined for something that is no record: any object can be pushed to where records are. */
export async function readRecordAt(git: GitRepository, oid: Oid): Promise<ReadRecord | undefined> {
  try {
    return parseRecord((await git.readCommit(oid)).message);
  } catch (error) {
    if (isSluiceError(error, 'Corrupt') || isSluiceError(error, 'NotFound')) return undefined;
    throw error;
  }
}
