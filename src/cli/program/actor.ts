import { userInfo } from 'node:os';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Actor } from '../../resource/object/request-context.ts';
import type { ActorOptions } from './invocation.ts';

const LONGEST_NAME = 253;

/** Names that Sluice uses itself: `push` is an unknown pusher; controllers and resolvers are not users. */
const RESERVED = /^(?:push$|(?:controller|resolver|group):)/;
/** System users of Kubernetes. A cluster may let a user impersonate one; a data folder does not. */
const SYSTEM = /^system:/;

/**
 * Returns the actor: --as, else SLUICE_USER, else the user of the system. This is not authenticated; the audit trail
 * records it.
 */
export function actorOf(options: ActorOptions, environment: NodeJS.ProcessEnv, isImpersonation = false): Actor {
  const name = options.as ?? (environment.SLUICE_USER || systemUser());
  if (name === '' || name.length > LONGEST_NAME || /[\s\u0000-\u001f\u007f-\u009f]/.test(name)) {
    throw new SluiceError(
      'InvalidInput',
      `${JSON.stringify(name)} cannot be the name of an actor: use 1 to ${LONGEST_NAME} characters without spaces`,
    );
  }
  if (RESERVED.test(name) || (SYSTEM.test(name) && !isImpersonation)) {
    throw new SluiceError(
      'InvalidInput',
      `${JSON.stringify(name)} cannot be the name of an actor: the name is reserved; name a user with --as`,
    );
  }
  return options.asGroup === undefined ? { name } : { name, groups: [...options.asGroup] };
}

function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    // A user id without an entry in the system's list, as containers have.
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
