import type { PullRequest } from '../../src/forge/forge.ts';
import { revisionName } from '../../src/package/model/identity/identity.ts';
import { packagePath, parseRef } from '../../src/package/model/identity/layout.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { membersAt } from './batch/batch-branch.ts';
import { isBatchBranch } from './batch/batch-name.ts';

/** Prefix of the branches of proposals. */
const PROPOSED = 'proposed/';

/** True for names that the branches of proposals have; users can push others under such a name. */
export function hasOwnName(branch: string): boolean {
  return branch.startsWith(PROPOSED) || isBatchBranch(branch);
}

type Head = Pick<PullRequest['head'], 'branch' | 'commit'>;

/**
 * See `isOwnBranch`. With `signal`, which ends that, a head that was not read yet is read first if a proposal may have it: hosts list branches before
 * they are fetched.
 */
export type OwnBranches = (head: Head, signal?: AbortSignal) => Promise<boolean>;

/** Of one repository, and of those that are registered for other directories of the same Git repository. */
export function ownBranchesOf(
  store: Pick<RevisionStore, 'findRepository' | 'repositories'>,
  repositoryId: string,
): OwnBranches {
  return async (head, signal) => {
    if (!hasOwnName(head.branch)) return false;
    const repository = store.findRepository(repositoryId);
    if (repository === undefined) return false;
    const isOfSame = ({ trust }: PackageRepository) => trust.repository === repository.trust.repository;
    const all = new Set([repository, ...store.repositories().filter(isOfSame)]);
    if (await isOwnBranch(all, head)) return true;
    return signal !== undefined && (await readHead(all, head, signal)) && (await isOwnBranch(all, head));
  };
}

/** Returns whether something was read. */
async function readHead(repositories: Iterable<PackageRepository>, head: Head, signal: AbortSignal): Promise<boolean> {
  let isRead = false;
  const ref = `refs/heads/${head.branch}`;
  for (const repository of repositories) {
    const { index, layout, follows } = repository;
    if (follows || parseRef(layout, ref).kind !== 'proposed' || index.ref(ref) === head.commit) continue;
    await repository.sync(signal, 'branches');
    isRead = true;
  }
  return isRead;
}

/**
 * Whether the pull requests of a branch are those of proposals of Sluice: a revision is there now, or was before it ended or its branch was
 * removed; a shared branch has commits of Sluice. `repositories`: all that are registered for the Git repository, each for another directory.
 */
async function isOwnBranch(repositories: Iterable<PackageRepository>, { branch, commit }: Head): Promise<boolean> {
  for (const repository of repositories) {
    const isOwn = isBatchBranch(branch)
      ? ((await membersAt(repository.git, commit)) ?? []).length > 0
      : branch.startsWith(PROPOSED) && isOfRevision(repository, branch);
    if (isOwn) return true;
  }
  return false;
}

function isOfRevision({ index, layout, repository, trust }: PackageRepository, branch: string): boolean {
  const ref = `refs/heads/${branch}`;
  const meaning = parseRef(layout, ref);
  const hasRecord = index.ref(layout.recordPrefix + branch.slice(PROPOSED.length)) !== undefined;
  // Of another directory, which another server may have registered.
  if (meaning.kind !== 'proposed') return hasRecord;
  const { package: name, workspace } = meaning;
  const revision = index.get(revisionName({ repository, package: name, workspace }));
  // The index has each such branch as a revision, also where it has no package of this name.
  if (index.ref(ref) !== undefined) return revision?.ref === ref && revision.tip.tree !== undefined;
  // The mark of a record stays when the revision is deleted.
  const wasRecorded = trust.mark({ package: packagePath(layout, name), workspace }) !== undefined;
  return revision !== undefined || hasRecord || wasRecorded;
}
