import { isSluiceError } from '../../foundation/sluice-error.ts';
import { DamageError, HOW_TO_REPAIR } from '../../git/errors.ts';
import type { Commit, GitRepository, Oid } from '../../git/git-repository.ts';

/**
 * Reads a commit of the history, which a clone that is verified has as a whole. Undefined for one that a push made up, at which the history ends.
 * Throws DamageError if it is missing: what is in the commits below it would be judged wrongly.
 */
export async function readHistoryCommit(git: GitRepository, oid: Oid): Promise<Commit | undefined> {
  try {
    return await git.readCommit(oid);
  } catch (error) {
    if (isSluiceError(error, 'NotFound'))
      throw new DamageError(`the history is not complete: ${error.message}. ${HOW_TO_REPAIR}`, error);
    if (isSluiceError(error, 'Corrupt') && !(error instanceof DamageError)) return undefined;
    throw error;
  }
}
