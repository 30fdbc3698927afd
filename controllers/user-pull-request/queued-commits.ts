import { userChecks } from './describe-user-pull.ts';
import { type PullContext, readPulledPackages } from './read-user-pull.ts';
import type { UserPulls } from './user-pulls.ts';

/**
 * Sets the checks of a pull request at the commits of a merge queue that would merge it. The packages that it changes are judged as they are in that
 * commit, which has those of the pull requests before it in the queue too; each of these has checks at a commit of its own.
 */
export async function reportQueued(pulls: UserPulls, number: number, context: PullContext): Promise<void> {
  const { repository, signal } = context;
  const written = pulls.writtenOf(number);
  const queued = new Map<string, string>();
  for (const { branch, commit } of pulls.queuedOf(number)) {
    // The host removes the branch when it has merged the commit, or puts another one in its place.
    if ((await repository.untracked.readBranch(branch, signal)) !== commit) continue;
    const read = await readPulledPackages({ ...context, merged: commit });
    const checks = userChecks(read);
    const text = JSON.stringify(checks);
    if (written.queued?.get(commit) !== text) await pulls.forge.setChecks(commit, checks, signal);
    queued.set(commit, text);
  }
  written.queued = queued;
}
