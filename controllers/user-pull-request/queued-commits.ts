import type { Oid } from '../../src/git/git-repository.ts';
import { userChecks } from './describe-user-pull.ts';
import type { ReadPull } from './read-registrations.ts';
import type { PullContext } from './read-user-pull.ts';
import type { UserPulls } from './user-pulls.ts';

/**
 * Sets the checks of a pull request at the commits of a merge queue that would merge it. The packages that it changes are judged as they are in that
 * commit, which has those of the pull requests before it in the queue too; each of these has checks at a commit of its own.
 */
export async function reportQueued(
  pulls: UserPulls,
  number: number,
  { repository, signal }: Pick<PullContext, 'repository' | 'signal'>,
  read: (merged: Oid) => Promise<ReadPull>,
): Promise<void> {
  const written = pulls.writtenOf(number);
  const queued = new Map<string, string>();
  for (const { branch, commit } of pulls.queuedOf(number)) {
    // The host removes the branch when it has merged the commit, or puts another one in its place.
    if ((await repository.untracked.readBranch(branch, signal)) !== commit) continue;
    const checks = userChecks(await read(commit));
    const text = JSON.stringify(checks);
    if (written.queued?.get(commit) !== text) await pulls.forge.setChecks(commit, checks, signal);
    queued.set(commit, text);
  }
  written.queued = queued;
}
