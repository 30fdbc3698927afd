import type { GitRepository, Oid } from '../../../src/git/git-repository.ts';
import { mergeBase } from '../../../src/git/objects/merge-base.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import type { LifecycleStep } from '../../../src/package/model/record/record.ts';
import { contentAt } from '../reviews/same-content.ts';

/** Commits of a proposal whose content is compared. */
const MAX_COMPARED = 50;

/** A proposal, by the steps of a record. */
export interface RecordedProposal {
  readonly propose: LifecycleStep;
  /** The rejection or the publication; undefined while it has not ended. */
  readonly end: LifecycleStep | undefined;
  /** No other one follows. */
  readonly isLast: boolean;
}

/** What is known of the proposals of a revision. */
export interface ProposedPackage {
  readonly path: string;
  readonly steps: readonly LifecycleStep[];
  /** The head of the proposal that has not ended, as it is now; undefined where it is gone. */
  readonly tip?: Oid | undefined;
}

/**
 * The last proposal that had this head, as Git proves it: the head has the package, is based on what was proposed, and is part of what was there when
 * the proposal ended. Users can make a branch of each name; such a head of another one is that of a user. Undefined if there is none.
 */
export async function proposalWith(
  git: GitRepository,
  { path, steps, tip }: ProposedPackage,
  head: string,
): Promise<RecordedProposal | undefined> {
  if (!(await hasPackage(git, path, head))) return undefined;
  for (const one of proposalsOf(steps).toReversed()) {
    const { propose, end, isLast } = one;
    const last = end === undefined ? tip : end.commit;
    if (head === propose.commit || head === last) return one;
    if (!(await isBasedOn(git, head, propose.commit))) continue;
    if (end === undefined ? isLast : await isBasedOn(git, end.commit, head)) return one;
  }
  return undefined;
}

/** Whether a commit is there, and has a package at this path. */
export async function hasPackage(git: GitRepository, path: string, commit: string): Promise<boolean> {
  if (!isOid(commit)) return false;
  const [stat, file] = await git.statObjects([commit, `${commit}:${path}/Kptfile`]);
  return stat?.type === 'commit' && file?.type === 'blob';
}

/** Whether a commit has another one, or is it. */
export async function isBasedOn(
  git: GitRepository,
  commit: string | undefined,
  base: string | undefined,
): Promise<boolean> {
  if (commit === undefined || base === undefined || !isOid(commit) || !isOid(base)) return false;
  const stats = await git.statObjects([commit, base]);
  if (stats.some((stat) => stat?.type !== 'commit')) return false;
  return (await mergeBase(git, base, commit)) === base;
}

function proposalsOf(steps: readonly LifecycleStep[]): readonly RecordedProposal[] {
  const found: RecordedProposal[] = [];
  for (const [at, propose] of steps.entries()) {
    if (propose.action !== 'propose') continue;
    const later = steps.slice(at + 1);
    const end = later.find(({ action }) => ENDS.has(action));
    found.push({ propose, end, isLast: later.every(({ action }) => action !== 'propose') });
  }
  return found;
}

const ENDS: ReadonlySet<string> = new Set(['propose', 'reject', 'approve']);

/** Whether a head has a package as a proposal had it at any time: conditions are no content. `tip`: where that ended, or is now. */
export async function hasProposedContent(
  git: GitRepository,
  { path, steps, tip }: ProposedPackage,
  head: string,
): Promise<boolean> {
  if (!isOid(head)) return false;
  const commits = new Set(steps.flatMap(({ commit }) => commit ?? []).filter(isOid));
  const first = proposalsOf(steps).at(-1)?.propose.commit;
  for (let next = tip; next !== undefined && commits.size < MAX_COMPARED; ) {
    const [stat] = await git.statObjects([next]);
    if (stat?.type !== 'commit') break;
    commits.add(next);
    if (next === first || first === undefined) break;
    [next] = (await git.readCommit(next)).parents;
  }
  const [there, ...trees] = await git.statObjects([head, ...commits].map((commit) => `${commit}:${path}`));
  if (there === undefined) return false;
  const known = new Set(trees.flatMap((tree) => tree?.oid ?? []));
  if (known.has(there.oid)) return true;
  const content = await contentAt(git, there.oid);
  if (content === undefined) return false;
  for (const tree of known) if ((await contentAt(git, tree)) === content) return true;
  return false;
}
