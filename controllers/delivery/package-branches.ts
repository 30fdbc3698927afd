import { canonicalAddress } from '../../src/git/open/repository-address.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery-target.ts';
import { keyOf, keyText } from '../../src/resource/object/object.ts';

/** Branches that hold drafts, proposals and records in every repository of packages. */
const PACKAGE_BRANCH = /^(?:drafts|proposed|deletionProposed|sluice-records)\//;

/** The registered repository whose packages live on the branch of a target, whatever its directory; undefined if there is none. */
export async function packageRepositoryAt(
  target: DeliveryTarget['spec']['git'],
  repositories: readonly Repository[],
): Promise<string | undefined> {
  const address = await canonicalAddress(target.repo);
  for (const repository of repositories) {
    const { git } = repository.spec;
    if (git === undefined || (git.branch !== target.branch && !PACKAGE_BRANCH.test(target.branch))) continue;
    if ((await canonicalAddress(git.repo)) === address) return keyText(keyOf(repository));
  }
  return undefined;
}
