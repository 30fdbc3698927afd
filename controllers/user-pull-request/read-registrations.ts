import type { PullRequest } from '../../src/forge/forge.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import { mergeBase } from '../../src/git/objects/merge-base.ts';
import { keyText } from '../../src/resource/object/object.ts';
import { changedPackages } from './changed-packages.ts';
import type { JudgedPull, PulledPackage } from './describe-user-pull.ts';
import type { ApprovalReader } from './missing-at-merge.ts';
import { headOf, MAX_PACKAGES, type PullContext, readPulledPackages } from './read-user-pull.ts';
import type { Registration } from './registrations.ts';

/** The packages of a pull request in all Repositories that have some. */
export interface ReadPull extends Pick<JudgedPull, 'packages' | 'omitted' | 'unread'> {
  /** Where each of all changed packages is on the main branch, to see whether that moves. */
  readonly onMain: ReadonlyMap<string, Oid | undefined>;
  /** One that is open has not the head yet. */
  readonly isUnfetched: boolean;
}

export interface SharedContext extends Omit<PullContext, 'approvals' | 'most'> {
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
  for (const { key, directory, repository } of registrations) {
    const isLead = repository === lead;
    if (!isLead && !(await changesBelow(context, directory))) continue;
    const present = isLead ? head : repository && (await headOf(repository, pull, signal));
    const name = keyText(key);
    if (repository === undefined || present?.commit !== head.commit) {
      isUnfetched ||= repository !== undefined;
      unread.push(`The packages in ${directory} wait until the Repository ${name} is read`);
      continue;
    }
    const own = {
      ...{ repository, approvals: context.approvalsIn(repository.namespace), most: MAX_PACKAGES - packages.length },
      // Under another address it may be another copy, which is read at its own times.
      mainHead: repository.git.path === lead.git.path ? mainHead : (repository.index.mainHead ?? mainHead),
    };
    const read = await readPulledPackages({ ...context, ...own });
    packages.push(...read.packages);
    for (const [path, tree] of read.onMain) onMain.set(path, tree);
    for (const reason of read.omitted) omitted.add(reason);
  }
  return { packages, onMain, omitted: [...omitted], unread, isUnfetched };
}

async function changesBelow(
  { repository: { git }, head, mainHead, signal }: SharedContext,
  directory: string,
): Promise<boolean> {
  const before = await mergeBase(git, mainHead, head.commit, signal);
  // The one that has the head reports that there is none.
  if (before === undefined) return false;
  const { packages, isComplete } = await changedPackages(git, { before, after: head.commit, directory });
  return packages.length > 0 || !isComplete;
}
