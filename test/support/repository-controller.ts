import { join } from 'node:path';
import {
  type RepositoryControllerOptions,
  repositoryController,
} from '../../controllers/repository/repository-controller.ts';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import type { Fixture } from './fixture.ts';

/** The repository controller of a fixture, with its data in `data` and without jitter. */
export function repositoryControllerOf(
  world: Fixture,
  options: Partial<RepositoryControllerOptions> = {},
): ControllerOptions {
  const { client, store, clock, folder, policyFor, trust } = world;
  return repositoryController({
    ...{ client, store, clock, policyFor, trust, dataFolder: join(folder, 'data') },
    dependentsOf: (revision) => store.dependentsOf(revision),
    git: { network: DEFAULT_NETWORK },
    random: () => 0.5,
    recorder: world.recorder('controller:repository'),
    ...options,
  });
}
