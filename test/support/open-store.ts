import { systemClock } from '../../src/foundation/time/clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { DEFAULT_POLICY } from '../../src/package/model/policy/policy.ts';
import { type OpenOptions, openPackageRepository } from '../../src/package/store/opening/open-package-repository.ts';
import { RevisionStore } from '../../src/package/store/revision-store.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { serverTrust } from './trust.ts';

export interface StoreOptions extends Partial<Pick<OpenOptions, 'credentials' | 'git' | 'trust'>> {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly createBranch?: boolean;
}

/** A store with the repository `packages` of an address, as a process sees it that has this data folder to itself. */
export async function openStore(
  repo: string,
  dataFolder: string,
  { annotations = {}, createBranch = false, git, ...options }: StoreOptions = {},
): Promise<RevisionStore> {
  const object = repositoryKind.complete({
    metadata: { name: 'packages', namespace: 'default', annotations },
    spec: { git: { repo, createBranch } },
  });
  const store = new RevisionStore();
  await store.add(
    await openPackageRepository(object, {
      trust: serverTrust,
      ...{ dataFolder, clock: systemClock, policyFor: () => DEFAULT_POLICY, dependentsOf: () => [] },
      onChange: (changes) => store.announce(changes),
      ...options,
      git: { network: DEFAULT_NETWORK, ...git },
    }),
  );
  return store;
}
