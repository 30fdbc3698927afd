import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Commit, GitRepository, Oid } from '../../git/git-repository.ts';

/** Undefined where the history is cut off, as in a shallow clone. */
export async function readCommitHere(git: GitRepository, oid: Oid): Promise<Commit | undefined> {
  try {
    return await git.readCommit(oid);
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}
