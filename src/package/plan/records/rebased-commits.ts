import type { Commit, GitRepository, Oid } from '../../../git/git-repository.ts';
import { readIfThere } from '../../../git/objects/merge-base.ts';
import { commitsBeyond } from '../../../git/objects/merge-bases.ts';

/** A host makes all commits of a rebase within this time. */
const MAX_REBASE_MS = 600_000;
/** Times of authors before and after these, which Git does not keep in each case. */
const FIRST_MS = 100_000_000_000;
const LAST_MS = 4_000_000_000_000;

/**
 * The commit of the main branch on which a host made a commit with one parent for a branch: by a squash the parent; by a rebase, which copies the
 * commits of the branch with the times of their authors, what is below the copies. Undefined where the history does not show it. Users choose these times:
 * commits of others can be among those after it, and none of the host is before it.
 */
export async function startOfRebase(
  git: Pick<GitRepository, 'readCommit'>,
  {
    head,
    commit,
    base,
    before,
  }: {
    readonly head: Oid;
    /** The last one that the host made. */
    readonly commit: Oid;
    /** A commit of the main branch from before it, if one is known. */
    readonly base: Oid | undefined;
    /** Heads that the main branch had before it. */
    readonly before: ReadonlySet<Oid>;
  },
): Promise<Oid | undefined> {
  const last = await git.readCommit(commit);
  const [onto] = last.parents;
  if (onto === undefined) return undefined;
  const picked = await pickedCommits(git, head, base ?? onto);
  if (picked === undefined) return undefined;
  const own = new Set(picked.map(({ oid }) => oid));
  const times = new Set(picked.map(({ author }) => author.time));
  const isAny = picked.some(({ author: { time } }) => !(time >= FIRST_MS && time <= LAST_MS));
  const isCopy = ({ author }: Commit) => isAny || times.has(author.time);
  if (!isCopy(last)) return onto;
  let start = onto;
  for (let count = 1; count < picked.length && !before.has(start); count += 1) {
    const next = await readIfThere(git, start);
    if (next === undefined) return undefined;
    if (next.parents.length > 1) return start;
    // The first commits of a branch stay as they are where the main branch is their parent.
    const isOwn = own.has(start);
    // The same branch can have been rebased onto the main branch before, below another one that was based on it.
    const isEarlier = last.committer.time - next.committer.time > MAX_REBASE_MS;
    if (!isOwn && (isEarlier || !isCopy(next))) return start;
    const [parent] = next.parents;
    if (parent === undefined) return undefined;
    start = parent;
  }
  return start;
}

/**
 * The commits of a branch that the main branch did not have, without merges, which a rebase leaves out; the newest ones first. Undefined where that is not
 * found out.
 */
export async function pickedCommits(
  git: Pick<GitRepository, 'readCommit'>,
  head: Oid,
  main: Oid,
): Promise<readonly Commit[] | undefined> {
  const own = await commitsBeyond(git, head, main);
  if (own === undefined) return undefined;
  const picked: Commit[] = [];
  for (const oid of own) {
    const commit = await readIfThere(git, oid);
    if (commit === undefined) return undefined;
    if (commit.parents.length === 1) picked.push(commit);
  }
  return picked;
}
