import { systemClock } from '../../src/foundation/time/clock.ts';
import type { GitRepository } from '../../src/git/git-repository.ts';
import { openRepository } from '../../src/git/open/open-repository.ts';
import { DEFAULT_POLICY } from '../../src/package/model/policy/policy.ts';
import { PackageRepository, type PackageRepositoryOptions } from '../../src/package/store/package-repository.ts';
import { MAIN_LAYOUT, trustOf } from '../support/trust.ts';

/** Opens a repository with its index, from a cache file if one is given. */
export async function openBench(
  path: string,
  cacheFile: string | undefined,
  opened?: GitRepository,
  onChange: PackageRepositoryOptions['onChange'] = () => undefined,
): Promise<PackageRepository> {
  const git = opened ?? (await openRepository(path));
  return PackageRepository.open({
    ...(await trustOf(git, path)),
    name: 'bench',
    namespace: 'default',
    deployment: false,
    url: path,
    layout: MAIN_LAYOUT,
    git,
    ...(cacheFile === undefined ? {} : { cacheFile }),
    clock: systemClock,
    policyFor: () => DEFAULT_POLICY,
    dependentsOf: () => [],
    onChange,
  });
}
