import { SluiceError } from '../../foundation/sluice-error.ts';
import { counted } from '../../foundation/text/counted.ts';
import { revisionsOf } from '../access/find-revision.ts';
import { forEachName } from '../access/for-each-name.ts';
import { inPackages } from '../access/in-packages.ts';
import { syncRepository } from '../access/repository-status.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { expectRepository, repositoriesOf } from './repo-get.ts';

export interface SyncOptions extends PlaceOptions, ActorOptions {
  readonly all?: boolean;
}

/** `sluice repo sync` */
export function repoSync(
  names: readonly string[],
  options: SyncOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  return inPackages(options, invocation, async (access) => {
    if (names.length === 0 && options.all !== true) {
      throw new SluiceError('InvalidInput', 'name repositories to read, or give --all');
    }
    const all = options.all === true ? await repositoriesOf(access, access.namespace) : [];
    const wanted = options.all === true ? all.map((object) => object.metadata.name) : names;
    return forEachName(wanted, invocation, access, async (name) => {
      await expectRepository(access, name);
      await syncRepository(access, name);
      const { length: count } = await revisionsOf(access, name);
      return `synced (${counted(count, 'package revision')})`;
    });
  });
}
