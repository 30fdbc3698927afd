import type { PastDelivery } from '../../src/delivery/rollback/decide-rollbacks.ts';
import type { PackageName } from '../../src/delivery/status/target-deployment.ts';
import { readMessage, readTarget } from '../../src/delivery/tree/trailers.ts';
import type { GitRepository, Oid } from '../../src/git/git-repository.ts';

/** Commits of a target that are searched for an earlier delivery. */
const MAX_COMMITS = 1000;

/** The deliveries of a package in a target's branch, the newest first, up to a removal or two revisions below the newest. */
export async function packageHistory(
  git: GitRepository,
  head: Oid,
  name: PackageName,
  target: string,
): Promise<PastDelivery[]> {
  const isWanted = (one: PackageName) => one.repository === name.repository && one.package === name.package;
  const history: PastDelivery[] = [];
  let next: Oid | undefined = head;
  for (let read = 0; next !== undefined && read < MAX_COMMITS; read += 1) {
    const { message, parents, committer } = await git.readCommit(next);
    next = parents[0];
    // A branch can have folders of several targets.
    if (readTarget(message) !== target) continue;
    const { delivered, removed } = readMessage(message);
    const found = delivered.find(isWanted);
    if (found !== undefined)
      history.push({ revision: found.revision, sourceCommit: found.sourceCommit, time: committer.time });
    else if (removed.some(isWanted)) {
      history.push({ revision: undefined, sourceCommit: undefined, time: committer.time });
      return history;
    }
  }
  return history;
}
