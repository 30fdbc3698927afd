import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import { forEachName } from '../access/for-each-name.ts';
import { inAccess } from '../access/in-access.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { type FreezePlace, freezeNamespace } from './freeze-place.ts';

/** `sluice freeze end` */
export function freezeEnd(
  names: readonly string[],
  options: PlaceOptions & ActorOptions & FreezePlace,
  invocation: Invocation,
): Promise<CommandResult> {
  const run = (access: Parameters<Parameters<typeof inAccess>[2]>[0]) => {
    const namespace = freezeNamespace(access, options);
    return forEachName(
      names,
      invocation,
      access,
      async (name) => {
        try {
          await access.client.delete(freezeKind, { namespace, name });
        } catch (error) {
          if (!isSluiceError(error, 'NotFound')) throw error;
          const hint = '"sluice freeze get -A" lists all; those of all namespaces need --all-namespaces';
          throw new SluiceError('NotFound', `there is no Freeze "${name}" in namespace ${namespace}; ${hint}`);
        }
        return 'ended';
      },
      options,
    );
  };
  return inAccess(options, invocation, run, true);
}
