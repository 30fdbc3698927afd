import { contentOf } from '../../../../kptfile-schema/index.ts';
import type { GitRepository, ObjectStat, Oid } from '../../../git/git-repository.ts';
import { mergeBase } from '../../../git/objects/merge-base.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import { isEdited, isOvertaken } from '../../kernel/main-edit.ts';
import { unreadableReason } from '../../model/content/unreadable-content.ts';
import type { RevisionRecord } from '../../model/record/record.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import type { EditedSides, LaterPublication, PackageOnMain } from '../../model/revision/revision-state.ts';
import { deletedContentScope } from '../../trust/ledger/trust-ledger.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';
import { readCommit } from './record-chain.ts';

/** Commits of the main branch that are searched for those that changed a package. */
const MAX_SEARCHED_COMMITS = 200;

type ReplacingRevision = Pick<PackageRevision, 'path' | 'key' | 'commit' | 'lifecycle' | 'tip' | 'kptfile'>;

/**
 * Reads the package that the approval of a revision replaces at a head of the main branch: one lookup of trees, unless the package there is
 * unexpected, or the draft was pushed; then also the merge base, and what both sides changed.
 */
export async function readOnMain(
  repo: RepositoryContext,
  revision: ReplacingRevision,
  { base }: Pick<RevisionRecord, 'base'>,
  head: Oid | undefined,
): Promise<PackageOnMain | undefined> {
  const { path, key, commit, lifecycle, tip } = revision;
  if (head === undefined || (lifecycle !== 'Draft' && lifecycle !== 'Proposed')) return undefined;
  const { git, index, trust } = repo;
  // Before the first await, so that it is as old as the head.
  const latest = latestIn(index.ofPackage(key.package));
  const deleted = trust.mark(deletedContentScope(path))?.digest;
  const specifications = [head, ...(base === undefined ? [] : [base.commit])].map((oid) => `${oid}:${path}`);
  const [now, then] = await git.statObjects(specifications);
  const derivedFrom = base === undefined ? [] : [base.tree];
  const published = latest?.tip.tree;
  const known = { tree: now?.oid, proposed: tip.tree, atBase: then?.oid, derivedFrom, published, deleted };
  if (!mayBeEdited(known, base !== undefined) && !isOvertaken(origin(known))) return known;
  const common = await mergeBase(git, commit, head);
  if (common === undefined || common === base?.commit) return withSides(known, common);
  // A push merged the main branch, or began the draft.
  const [merged] = await git.statObjects([`${common}:${path}`]);
  return withSides({ ...known, atBase: merged?.oid, derivedFrom: [...derivedFrom, merged?.oid] }, common);

  /** Of a proposal that was based on a publication as it was proposed, what it is derived from is older. */
  function origin(onMain: PackageOnMain): PackageOnMain {
    const from = base?.derivedFrom;
    return from === undefined ? onMain : { ...onMain, atBase: from, derivedFrom: [from] };
  }

  async function withSides(onMain: PackageOnMain, from: Oid | undefined): Promise<PackageOnMain> {
    if (isEdited(onMain)) return { ...onMain, sides: await readSides(repo, path, head ?? '', onMain, from) };
    // A push that merged the main branch since is a decision of its user.
    const of = from === base?.commit ? origin(onMain) : onMain;
    const later = latest && isOvertaken(of) ? await readLater(git, latest, revision, of) : undefined;
    return later === undefined ? onMain : { ...onMain, later };
  }
}

/** Without a recorded base a removed package is known to have been there only by the merge base. */
function mayBeEdited(known: PackageOnMain, hasBase: boolean): boolean {
  return isEdited(known) || (!hasBase && known.tree === undefined);
}

/** The published revision of a package with the highest number. */
export function latestIn(ofPackage: readonly PackageRevision[]): PackageRevision | undefined {
  let latest: PackageRevision | undefined;
  for (const one of ofPackage)
    if (one.revision > (latest?.revision ?? 0) && one.ref.startsWith('refs/tags/')) latest = one;
  return latest;
}

/** The publication of a package with the highest number, if its commit is above this one on the main branch. */
export async function publishedAbove(
  { index }: Pick<RepositoryContext, 'index'>,
  name: string,
  commit: Oid,
  head: Oid | undefined,
): Promise<PackageRevision | undefined> {
  const latest = latestIn(index.ofPackage(name));
  if (latest === undefined || latest.commit === commit || !(await index.isOnMain(latest.commit, head)))
    return undefined;
  return (await index.isOnMain(commit, latest.commit)) ? latest : undefined;
}

/** Undefined if the revision has all that the publication changed. */
async function readLater(
  git: GitRepository,
  { name, revision, kptfile }: PackageRevision,
  { kptfile: own }: ReplacingRevision,
  { tree, proposed, derivedFrom }: PackageOnMain,
): Promise<LaterPublication | undefined> {
  const undone = new Set(await changedFiles(git, tree, proposed));
  // Conditions and gates are of each revision.
  if (own !== undefined && kptfile !== undefined && sameValue(contentOf(own), contentOf(kptfile)))
    undone.delete('Kptfile');
  const files = (await changedFiles(git, derivedFrom.at(-1), tree)).filter((file) => undone.has(file));
  return files.length === 0 ? undefined : { name, revision, files };
}

async function readSides(
  repo: RepositoryContext,
  path: string,
  head: Oid,
  { tree, proposed, derivedFrom }: PackageOnMain,
  base: Oid | undefined,
): Promise<EditedSides> {
  const { git } = repo;
  const before = derivedFrom.at(-1);
  return {
    ...{ base, commits: await commitsOn(repo, path, head, base) },
    filesOnMain: await changedFiles(git, before, tree),
    filesInRevision: await changedFiles(git, before, proposed),
  };
}

async function changedFiles(git: GitRepository, before: Oid | undefined, after: Oid | undefined): Promise<string[]> {
  const stats = await git.statObjects([before, after].filter((oid) => oid !== undefined));
  // A file in the place of the folder has no files.
  const trees = new Set(stats.flatMap((stat) => (stat?.type === 'tree' ? stat.oid : [])));
  const treeOf = (oid: Oid | undefined) => (oid !== undefined && trees.has(oid) ? oid : undefined);
  try {
    return (await git.diffTrees(treeOf(before), treeOf(after))).map((change) => change.path);
  } catch (error) {
    // Which files they are is for users to read; the revision, or what the host merged, is refused as one that cannot be read.
    if (unreadableReason(error) === undefined) throw error;
    return [];
  }
}

/** The first and the last commit of the main branch after `base` that changed a folder; only the last if the search ended before `base`. */
async function commitsOn(
  repo: RepositoryContext,
  path: string,
  head: Oid,
  base: Oid | undefined,
): Promise<readonly Oid[]> {
  const line: Oid[] = [];
  let isWhole = false;
  for (let oid: Oid | undefined = head; oid !== undefined && line.length < MAX_SEARCHED_COMMITS; ) {
    line.push(oid);
    isWhole = oid === base;
    if (isWhole) break;
    oid = (await readCommit(repo, oid))?.parents[0];
  }
  const stats: (ObjectStat | undefined)[] = await repo.git.statObjects(line.map((oid) => `${oid}:${path}`));
  // The last one read has no known parent.
  const changed = line.slice(0, -1).filter((_, at) => stats[at]?.oid !== stats[at + 1]?.oid);
  const [last] = changed;
  const first = changed.at(-1);
  if (last === undefined || first === undefined) return [];
  return isWhole && first !== last ? [first, last] : [last];
}
