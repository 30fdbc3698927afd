import { repositoryKind } from '../../resource/kinds/repository.ts';
import { secretKind } from '../../resource/kinds/secret.ts';
import type { Access } from '../access/access.ts';
import type { ActorOptions, Invocation, Outcome, PlaceOptions } from '../program/invocation.ts';
import { forEachName } from './for-each-name.ts';
import { inAccess } from './in-access.ts';
import { expectRepository } from './repo-get.ts';
import { AUTH_SECRET_SUFFIX } from './repo-reg.ts';

export interface UnregOptions extends PlaceOptions, ActorOptions {
  readonly keepAuthSecret?: boolean;
}

/** `sluice repo unreg` */
export function repoUnreg(names: readonly string[], options: UnregOptions, invocation: Invocation): Promise<Outcome> {
  const unregister = (access: Access) =>
    forEachName(names, invocation, access, async (name) => {
      const { client, namespace } = access;
      const object = await expectRepository(access, name);
      await client.delete(repositoryKind, { namespace, name });
      const secret = object.spec.git?.secretRef?.name;
      // Only the secret that the registration made; others may serve more repositories.
      if (secret === `${name}${AUTH_SECRET_SUFFIX}` && options.keepAuthSecret !== true) {
        if ((await client.find(secretKind, { namespace, name: secret })) !== undefined) {
          await client.delete(secretKind, { namespace, name: secret });
        }
      }
      return 'unregistered';
    });
  return inAccess(options, invocation, unregister, true);
}
