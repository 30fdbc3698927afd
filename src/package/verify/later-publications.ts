import type { Commit, GitRepository, Oid } from '../../git/git-repository.ts';
import { parseCommitMessage } from '../model/record/commit-message.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';
import { readHistoryCommit } from './history-commit.ts';

interface MainBranch {
  readonly git: GitRepository;
  readonly trust: RepositoryTrust;
  /** As statements name it. */
  readonly branch: string;
  readonly head: Oid | undefined;
}

/** A publication as a row of the index shows it. */
interface Published {
  readonly commit: Oid;
  /** `<path>/v<number>`. */
  readonly name: string;
  /** Its statement names the commit as one of several publications. */
  readonly isShared: boolean;
}

/**
 * Names of publications in whose place a later one stands on the main branch, with the commit of that one. A number is given again only after its
 * publication was deleted, and a push can set the tag back to it. A ledger has marks of that; where there is none, the main branch proves
 * it. Which publications share a commit is in its message, and one statement on the commit proves it. Not found are a deleted publication whose
 * number was not reused, and one whose statement is in a tag on a commit of a Git host.
 */
export async function findLaterPublications(
  { git, trust, branch, head }: MainBranch,
  published: readonly Published[],
): Promise<ReadonlyMap<string, Oid>> {
  const wanted = Map.groupBy(published, ({ commit }) => commit);
  const names = new Set(published.map(({ name }) => name));
  /** The last publication of each name on the branch, until the walk reaches the one that the tag points to. */
  const last = new Map<string, Oid>();
  const found = new Map<string, Oid>();
  for (let oid = head; oid !== undefined && wanted.size > 0; ) {
    const commit = await readHistoryCommit(git, oid);
    if (commit === undefined) break;
    const shown = wanted.get(oid) ?? [];
    for (const { name } of shown) {
      const later = last.get(name);
      if (later !== undefined) found.set(name, later);
      else last.set(name, oid);
    }
    wanted.delete(oid);
    // What a tag shows here was verified before.
    const name = shown.length > 0 ? undefined : await publicationIn(commit, names, trust, branch);
    const others = shown.some(({ isShared }) => isShared) ? parseCommitMessage(commit.message).annotations : [];
    for (const other of [name, ...others.map((one) => `${one.package}/v${one.revision}`)])
      if (other !== undefined && names.has(other) && !last.has(other)) last.set(other, oid);
    oid = commit.parents[0];
  }
  return found;
}

/** What the commit publishes by a statement that counts and was made for this place. */
async function publicationIn(
  { message, parents }: Commit,
  names: ReadonlySet<string>,
  trust: RepositoryTrust,
  main: string,
): Promise<string | undefined> {
  const signed = parseCommitMessage(message).statement;
  if (signed === undefined) return undefined;
  const { repository, branch, onto, package: path, revision } = signed.statement;
  const name = `${path}/v${revision}`;
  const isFromHere = repository === trust.repository && branch === main && onto === parents[0];
  if (!isFromHere || !names.has(name)) return undefined;
  return trust.distrustOfSigner(await trust.signerOf(signed)) === undefined ? name : undefined;
}
