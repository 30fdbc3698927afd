import type { GitRepository, Oid, TreeChange } from '../../../src/git/git-repository.ts';
import { unreadableReason } from '../../../src/package/model/content/unreadable-content.ts';

/** The files in which two trees differ. Undefined if they are too many to be compared, or one of the trees is malformed. */
export async function readableChanges(
  git: Pick<GitRepository, 'diffTrees'>,
  before: Oid | undefined,
  after: Oid | undefined,
): Promise<readonly TreeChange[] | undefined> {
  try {
    return await git.diffTrees(before, after);
  } catch (error) {
    if (unreadableReason(error) === undefined) throw error;
    return undefined;
  }
}
