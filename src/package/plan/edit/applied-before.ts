import { conditionsOf, contentOf, gatesOf, readKptfile } from '../../../../kptfile-schema/index.ts';
import type { GitRepository, Oid } from '../../../git/git-repository.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import { parseCommitMessage } from '../../model/record/commit-message.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';
import { readCommit } from '../records/record-chain.ts';
import { RENDERED } from './render.ts';
import { sortFiles, type WholeFiles } from './replace-texts.ts';

/** Maximum number of commits that are searched, the youngest first. */
const MAX_COMMITS = 64;

type Texts = ReadonlyMap<string, string>;

/**
 * True if files have nothing beyond what people wrote into the package last: the package holds them as they are, or held them, and only
 * controllers changed the files in question since. Conditions that people set in between do not count as a change of files.
 */
export async function isAppliedBefore(
  repo: RepositoryContext,
  revision: PackageRevision,
  { texts, binary }: WholeFiles,
): Promise<boolean> {
  const { texts: present, binary: others } = sortFiles(await repo.content(revision));
  if (binary !== undefined && !sameBinary(binary, others)) return false;
  const paths = [...new Set([...texts.keys(), ...Object.keys(present)])].filter((path) => {
    const now = Object.hasOwn(present, path) ? present[path] : undefined;
    return now !== texts.get(path);
  });
  if (paths.length === 0) return true;
  // A published revision corresponds to the draft that the approval moved to the main branch.
  let commit = revision.ref.startsWith('refs/tags/') ? revision.tip.parents[1] : revision.commit;
  let there = commit === undefined ? undefined : await textsAt(repo.git, commit, revision.path, paths);
  for (let seen = 0; commit !== undefined && there !== undefined && seen < MAX_COMMITS; seen += 1) {
    if (sameTexts(there, texts, paths, sameKptfile)) return true;
    const made = await readCommit(repo, commit);
    commit = made?.parents[0];
    if (made === undefined || commit === undefined) return false;
    const before = await textsAt(repo.git, commit, revision.path, paths);
    const byController = parseCommitMessage(made.message).face === 'controller';
    if (!byController && !sameTexts(before, there, paths, sameContent)) return false;
    there = before;
  }
  return false;
}

function sameBinary(one: ReadonlyMap<string, Buffer>, other: ReadonlyMap<string, Buffer>): boolean {
  return one.size === other.size && [...one].every(([path, data]) => other.get(path)?.equals(data) === true);
}

async function textsAt(git: GitRepository, commit: Oid, folder: string, paths: readonly string[]): Promise<Texts> {
  const found = await git.readObjects(paths.map((path) => `${commit}:${folder}/${path}`));
  return new Map(
    paths.flatMap((path, index) => {
      const object = found[index];
      return object?.type === 'blob' ? [[path, Buffer.from(object.data).toString('utf8')] as const] : [];
    }),
  );
}

function sameTexts(
  one: Texts,
  other: Texts,
  paths: readonly string[],
  same: (one: string, other: string) => boolean,
): boolean {
  return paths.every((path) => {
    const [left, right] = [one.get(path), other.get(path)];
    if (left === right) return true;
    return path === 'Kptfile' && left !== undefined && right !== undefined && same(left, right);
  });
}

/** Two Kptfiles with the same meaning, but for the condition that rendering adds. */
function sameKptfile(one: string, other: string): boolean {
  return sameValue(meaningOf(one, true), meaningOf(other, true));
}

function sameContent(one: string, other: string): boolean {
  return sameValue(meaningOf(one, false), meaningOf(other, false));
}

/** The values of a Kptfile; of one that cannot be read, its text. */
function meaningOf(text: string, withConditions: boolean): unknown {
  const read = readKptfile(text);
  if (!read.ok) return text;
  const conditions = [...conditionsOf(read.kptfile).values()].filter(({ type }) => type !== RENDERED.type);
  return [contentOf(read.kptfile), gatesOf(read.kptfile), ...(withConditions ? conditions : [])];
}
