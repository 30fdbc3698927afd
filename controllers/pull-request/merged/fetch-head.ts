import type { PullRequest } from '../../../src/forge/forge.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';

/** How long a merge waits for its head, where the host does not have it. What is not known without it is out of band then. */
export const MISSING_HEAD_MS = 60_000;

type Place = Pick<PackageRepository, 'git' | 'untracked'>;

/**
 * Fetches the head of a pull request whose branch may be removed, unless the repository has it. Returns false if the host does not have it any more,
 * or not yet.
 */
export async function fetchHead(
  repository: Place,
  { number, head: { commit } }: Pick<PullRequest, 'number' | 'head'>,
  signal: AbortSignal,
): Promise<boolean> {
  if (await hasCommit(repository, commit)) return true;
  try {
    await repository.untracked.fetchPull(number, signal);
    return await hasCommit(repository, commit);
  } finally {
    // What was fetched is there for longer than it is needed.
    await repository.untracked.forgetPull(number);
  }
}

export async function hasCommit({ git }: Pick<Place, 'git'>, commit: string): Promise<boolean> {
  if (!isOid(commit)) return false;
  const [stat] = await git.statObjects([commit]);
  return stat?.type === 'commit';
}
