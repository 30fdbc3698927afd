import { repositoryKind } from '../../resource/kinds/repository.ts';
import { secretKind } from '../../resource/kinds/secret.ts';
import type { Session } from '../assembly/session.ts';
import type { ActorOptions, DataOptions, Invocation, Outcome } from '../program/invocation.ts';
import { forEachName } from './for-each-name.ts';
import { inSession } from './in-session.ts';
import { expectRepository } from './repo-get.ts';
import { AUTH_SECRET_SUFFIX } from './repo-reg.ts';

export interface UnregOptions extends DataOptions, ActorOptions {
  readonly keepAuthSecret?: boolean;
}

/** `sluice repo unreg` */
export function repoUnreg(names: readonly string[], options: UnregOptions, invocation: Invocation): Promise<Outcome> {
  const unregister = (session: Session) =>
    forEachName(names, invocation, async (name) => {
      const object = expectRepository(session, name);
      await session.client.delete(repositoryKind, { name });
      const secret = object.spec.git?.secretRef?.name;
      // Only the secret that the registration made; others may serve more repositories.
      if (secret === `${name}${AUTH_SECRET_SUFFIX}` && options.keepAuthSecret !== true) {
        if ((await session.client.find(secretKind, { name: secret })) !== undefined) {
          await session.client.delete(secretKind, { name: secret });
        }
      }
      return 'unregistered';
    });
  return inSession(options, invocation, unregister, true);
}
