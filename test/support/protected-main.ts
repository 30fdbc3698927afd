import { PushRefusedError } from '../../src/git/errors.ts';
import type { GitRepository, RefUpdate } from '../../src/git/git-repository.ts';

const MAIN = 'refs/heads/main';

/** Lets a repository refuse Sluice's changes of its main branch, as a Git host does where rules reserve it for merges. Returns how to end that. */
export function protectMain({ git }: { readonly git: GitRepository }): () => void {
  const transaction = git.transaction.bind(git);
  git.transaction = async (updates: readonly RefUpdate[]) => {
    if (updates.some(({ ref, type }) => ref === MAIN && type !== 'verify'))
      throw new PushRefusedError({ ref: MAIN }, `the remote rejected ${MAIN}: protected branch hook declined`);
    return transaction(updates);
  };
  return () => {
    git.transaction = transaction;
  };
}
