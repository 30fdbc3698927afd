import { userInfo } from 'node:os';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { userNameProblem } from '../../resource/object/actor-name.ts';
import type { Actor } from '../../resource/object/request-context.ts';
import type { ActorOptions } from '../output/invocation.ts';

const LONGEST_NAME = 253;

/** System users of Kubernetes. A cluster may let a user impersonate one; a data folder does not. */
const SYSTEM = /^system:/;

/**
 * Returns the actor: --as, else SLUICE_USER, else the user of the system. This is not authenticated; the audit trail
 * records it.
 */
export function actorOf(options: ActorOptions, environment: NodeJS.ProcessEnv, isImpersonation = false): Actor {
  const name = expectActorName(options.as ?? (environment.SLUICE_USER || systemUser()), isImpersonation);
  return options.asGroup === undefined ? { name } : { name, groups: [...options.asGroup] };
}

/** Returns a name that a user may have; InvalidInput otherwise. Only a cluster lets a user impersonate a system user. */
export function expectActorName(name: string, allowsSystem = false): string {
  const refuse = (why: string) =>
    new SluiceError('InvalidInput', `${JSON.stringify(name)} cannot be the name of an actor: ${why}`);
  if (name === '' || name.length > LONGEST_NAME || /[\s\u0000-\u001f\u007f-\u009f]/.test(name))
    throw refuse(`use 1 to ${LONGEST_NAME} characters without spaces`);
  const problem = SYSTEM.test(name) && !allowsSystem ? 'the name is reserved' : userNameProblem(name);
  if (problem !== undefined) throw refuse(`${problem}; use another name`);
  return name;
}

function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    // A user id without an entry in the system's list, as containers have.
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
