import type { Oid } from '../../src/git/git-repository.ts';
import { userChecks } from './describe-user-pull.ts';
import type { PullContext } from './judging/read-user-pull.ts';
import type { UserPulls } from './reading/user-pulls.ts';
import type { ReadPull } from './registrations/read-registrations.ts';

/**
 * Sets the checks of a pull request at the commits of a merge queue that would merge it. The packages that it changes are judged as they are in that
 * commit, which has those of the pull requests before it in the queue too; each of these has checks at a commit of its own. None are set where the
 * commit is the head of a pull request by now, which is judged by itself.
 */
export async function reportQueued(
  pulls: UserPulls,
  number: number,
  { repository, signal }: Pick<PullContext, 'repository' | 'signal'>,
  isHead: (commit: Oid) => boolean,
  read: (merged: Oid) => Promise<ReadPull>,
): Promise<void> {
  const written = pulls.writtenOf(number);
  const known = written.queued ?? new Map<string, string>();
  written.queued = known;
  const queued = new Set<string>();
  for (const { branch, commit } of pulls.queuedOf(number)) {
    // The host removes the branch when it has merged the commit, or puts another one in its place.
    if (isHead(commit) || (await repository.untracked.readBranch(branch, signal)) !== commit) continue;
    const checks = userChecks(await read(commit));
    const text = JSON.stringify(checks);
    queued.add(commit);
    if (known.get(commit) === text) continue;
    // A failure can follow the effect: then it is not known which checks the host has.
    known.delete(commit);
    await pulls.forge.setChecks(commit, checks, signal);
    known.set(commit, text);
  }
  for (const commit of known.keys()) if (!queued.has(commit)) known.delete(commit);
}
