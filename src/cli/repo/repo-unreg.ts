import { secretKind } from '../../resource/kinds/core/secret.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { WEBHOOK_SECRET_ANNOTATION } from '../../server/webhooks/webhook-secrets.ts';
import type { Access } from '../access/access.ts';
import { forEachName } from '../access/for-each-name.ts';
import { inAccess } from '../access/in-access.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { expectRepository } from './repo-get.ts';
import { AUTH_SECRET_SUFFIX } from './repository-options.ts';
import { WEBHOOK_SECRET_SUFFIX } from './webhook-secret.ts';

export interface UnregOptions extends PlaceOptions, ActorOptions {
  readonly keepAuthSecret?: boolean;
}

/** `sluice repo unreg` */
export function repoUnreg(
  names: readonly string[],
  options: UnregOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  const unregister = (access: Access) =>
    forEachName(names, invocation, access, async (name) => {
      const { client, namespace } = access;
      const object = await expectRepository(access, name);
      await client.delete(repositoryKind, { namespace, name });
      const credentials = object.spec.git?.secretRef?.name;
      const webhook = object.metadata.annotations?.[WEBHOOK_SECRET_ANNOTATION];
      // Only the Secrets that the registration created; others may be used by more repositories.
      const made = [
        ...(credentials === `${name}${AUTH_SECRET_SUFFIX}` && options.keepAuthSecret !== true ? [credentials] : []),
        ...(webhook === `${name}${WEBHOOK_SECRET_SUFFIX}` ? [webhook] : []),
      ];
      for (const secret of made) {
        if ((await client.find(secretKind, { namespace, name: secret })) === undefined) continue;
        await client.delete(secretKind, { namespace, name: secret });
      }
      return 'unregistered';
    });
  return inAccess(options, invocation, unregister, true);
}
