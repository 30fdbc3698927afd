import type { PullRequest } from '../../../src/forge/forge.ts';
import type { Oid } from '../../../src/git/git-repository.ts';
import { keyText } from '../../../src/resource/object/object.ts';
import type { JudgedPull, PulledPackage } from '../describe-user-pull.ts';
import { type BranchStart, changesOfBranch, startOfBranch } from '../judging/branch-changes.ts';
import { headOf, MAX_PACKAGES, type PullContext, readPulledPackages } from '../judging/read-user-pull.ts';
import type { ApprovalReader } from '../judging/reviewed-at-merge.ts';
import { unjudgedMerge } from '../judging/unjudged-merge.ts';
import type { Registration } from './registrations.ts';

/** The packages of a pull request in all Repositories that have some. */
export interface ReadPull extends Pick<JudgedPull, 'packages' | 'omitted' | 'unread'> {
  /** Objects of the main branch by path, where it decides about the packages that the branch changes, to see whether that moves. */
  readonly onMain: ReadonlyMap<string, Oid | undefined>;
  /** One that is open has not the head yet. */
  readonly isUnfetched: boolean;
}

export interface SharedContext extends Omit<PullContext, 'approvals' | 'most' | 'start'> {
  readonly pull: PullRequest;
  readonly registrations: readonly Registration[];
  approvalsIn(namespace: string): ApprovalReader;
}

/**
 * Judges the packages that a pull request changes in each of the Repositories, by the policies of each. `repository` is the one that has the head.
 * Packages of one that is not open, or does not have the head yet, are not passed over: they are left unread.
 */
export async function readRegistrations(context: SharedContext): Promise<ReadPull> {
  const { registrations, pull, repository: lead, head, mainHead, signal } = context;
  const packages: PulledPackage[] = [];
  const onMain = new Map<string, Oid | undefined>();
  const omitted = new Set<string>();
  const unread: string[] = [];
  let isUnfetched = false;
  const start = await startOfBranch(lead.git, { main: mainHead, head: head.commit }, signal);
  for (const { key, directory, repository } of registrations) {
    const isLead = repository === lead;
    if (!isLead && !(await changesBelow(context, start, directory))) continue;
    const present = isLead ? head : repository && (await headOf(repository, pull, signal));
    const name = keyText(key);
    if (repository === undefined || present?.commit !== head.commit) {
      isUnfetched ||= repository !== undefined;
      unread.push(`The packages in ${directory} wait until the Repository ${name} is read`);
      continue;
    }
    const { git, index } = repository;
    // Under another address it may be another copy, which is read at its own times.
    const main = git.path === lead.git.path ? mainHead : (index.mainHead ?? mainHead);
    const own = {
      ...{ repository, approvals: context.approvalsIn(repository.namespace), most: MAX_PACKAGES - packages.length },
      mainHead: main,
      start: main === mainHead ? start : await startOfBranch(git, { main, head: head.commit }, signal),
    };
    const read = await readPulledPackages({ ...context, ...own });
    packages.push(...read.packages);
    for (const [path, tree] of read.onMain) onMain.set(path, tree);
    for (const reason of read.omitted) omitted.add(reason);
  }
  const main = context.merged ?? mainHead;
  const reasons = start === undefined ? [] : await unjudged(context, start, { main, onMain });
  return { packages, onMain, omitted: [...new Set([...reasons, ...omitted])], unread, isUnfetched };
}

/** Adds to `onMain` what else of the main branch this depends on. */
async function unjudged(
  { repository: { git }, registrations, head, mainHead }: SharedContext,
  start: BranchStart,
  { main, onMain }: { readonly main: Oid; readonly onMain: Map<string, Oid | undefined> },
): Promise<readonly string[]> {
  const directories = registrations.map(({ directory }) => directory);
  const sides = { start, main, head: head.commit, directories, packages: new Set(onMain.keys()) };
  const { reasons, watched } = await unjudgedMerge(git, sides);
  const paths = [...watched];
  const stats = await git.statObjects(paths.map((path) => `${mainHead}:${path}`));
  for (const [at, path] of paths.entries()) onMain.set(path, stats[at]?.oid);
  return reasons;
}

async function changesBelow(
  { repository: { git }, head }: SharedContext,
  start: BranchStart | undefined,
  directory: string,
): Promise<boolean> {
  // The one that has the head reports that there is none.
  if (start === undefined) return false;
  const { packages, isComplete } = await changesOfBranch(git, start, { after: head.commit, directory });
  return packages.length > 0 || !isComplete;
}
