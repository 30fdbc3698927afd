import { canonicalAddress } from '../../../src/git/open/repository-address.ts';
import type { Repository } from '../../../src/resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { keyOf, keyText } from '../../../src/resource/object/object.ts';

/** Branches with drafts, proposals and records, which every package repository has. */
const PACKAGE_BRANCH = /^(?:drafts|proposed|deletionProposed|sluice-records)\//;

/**
 * The registered repository whose packages live on the branch of a target, whatever its directory, as it follows `belongs to the packages
 * of`; undefined if there is none. One of another namespace is not named: users of this one may not know what is registered there.
 */
export async function packageRepositoryAt(
  target: DeliveryTarget['spec']['git'],
  repositories: readonly Repository[],
  namespace: string | undefined,
): Promise<string | undefined> {
  const address = await canonicalAddress(target.repo);
  let isElsewhere = false;
  for (const repository of repositories) {
    const { git } = repository.spec;
    if (git === undefined || (git.branch !== target.branch && !PACKAGE_BRANCH.test(target.branch))) continue;
    if ((await canonicalAddress(git.repo)) !== address) continue;
    if (repository.metadata.namespace === namespace) return `Repository ${keyText(keyOf(repository))}`;
    isElsewhere = true;
  }
  return isElsewhere ? 'a Repository of another namespace' : undefined;
}

/** Why a target does not deliver into a branch of packages, with the next step. */
export function packageBranchText(
  { repo, branch }: { readonly repo: string; readonly branch: string },
  registered: string,
): string {
  return `branch ${branch} of ${repo} belongs to the packages of ${registered}; deliver into another branch or repository`;
}
