import { systemClock } from '../../src/foundation/clock.ts';
import type { GitRepository } from '../../src/git/git-repository.ts';
import { openRepository } from '../../src/git/open-repository.ts';
import { PackageRepository, type PackageRepositoryOptions } from '../../src/package/package-repository.ts';
import { DEFAULT_POLICY } from '../../src/package/policy.ts';

/** Opens a repository with its index, from a cache file if one is given. */
export async function openBench(
  path: string,
  cacheFile: string | undefined,
  opened?: GitRepository,
  onChange: PackageRepositoryOptions['onChange'] = () => undefined,
): Promise<PackageRepository> {
  return PackageRepository.open({
    name: 'bench',
    namespace: 'default',
    deployment: false,
    url: path,
    layout: { branch: 'main', directory: '', recordPrefix: 'refs/sluice/records/' },
    git: opened ?? (await openRepository(path)),
    ...(cacheFile === undefined ? {} : { cacheFile }),
    clock: systemClock,
    policyFor: () => DEFAULT_POLICY,
    dependentsOf: () => [],
    onChange,
  });
}
