import { readMessage } from '../../src/delivery/tree/trailers.ts';
import type { GitRepository, Oid } from '../../src/git/git-repository.ts';

/** Commits of a target that are searched; in practice one of the last names each package. */
const MAX_COMMITS = 500;

/** The newest commit of a target's branch that delivered or removed a package. */
export interface LastDelivery {
  readonly commit: Oid;
  /** The revision number that it delivered; undefined if it removed the package. */
  readonly revision: number | undefined;
}

/** Walks the branch back until a commit names the package; undefined if none of the last `MAX_COMMITS` does. */
export async function lastDelivery(
  git: GitRepository,
  head: Oid,
  wanted: { readonly repository: string; readonly package: string },
): Promise<LastDelivery | undefined> {
  const isWanted = (one: { repository: string; package: string }) =>
    one.repository === wanted.repository && one.package === wanted.package;
  let next: Oid | undefined = head;
  for (let read = 0; next !== undefined && read < MAX_COMMITS; read++) {
    const commit: { message: string; parents: readonly Oid[] } = await git.readCommit(next);
    const { delivered, removed } = readMessage(commit.message);
    const found = delivered.find(isWanted);
    if (found !== undefined) return { commit: next, revision: found.revision };
    if (removed.some(isWanted)) return { commit: next, revision: undefined };
    next = commit.parents[0];
  }
  return undefined;
}
