import type { Repository } from '../../../resource/kinds/porch/repository.ts';
import type { DeepReadonly } from '../../../resource/object/object.ts';
import { HOST_USERS_ANNOTATION, HOST_USERS_KEY, type HostUsers, hostUsersOf } from '../../model/policy/host-users.ts';
import { ALLOWED_SIGNERS_ANNOTATION, ALLOWED_SIGNERS_KEY, type People, peopleOf } from '../../model/policy/people.ts';

/** Name of the ConfigMap with the keys of a repository's pushers; undefined if there is none. */
export function allowedSignersOf(repository: DeepReadonly<Repository>): string | undefined {
  return annotationOf(repository, ALLOWED_SIGNERS_ANNOTATION);
}

/** The texts of ConfigMaps that were read before. */
const cachedPeople = new WeakMap<object, People>();

/** Returns the users in a ConfigMap, read once for each version of it. */
export function parsePeople(configMap: DeepReadonly<{ data?: Record<string, string> | undefined }>): People {
  const before = cachedPeople.get(configMap);
  if (before !== undefined) return before;
  const text = configMap.data?.[ALLOWED_SIGNERS_KEY];
  const missing = { signers: [], problems: [`it has no key ${ALLOWED_SIGNERS_KEY}`] };
  const people = text === undefined ? missing : peopleOf(text);
  cachedPeople.set(configMap, people);
  return people;
}

/** Name of the ConfigMap that maps accounts of the Git host to users; undefined if reports of the host do not count. */
export function hostUsersNameOf(repository: DeepReadonly<Repository>): string | undefined {
  return annotationOf(repository, HOST_USERS_ANNOTATION);
}

function annotationOf({ metadata }: DeepReadonly<Repository>, key: string): string | undefined {
  const { annotations } = metadata;
  return annotations !== undefined && Object.hasOwn(annotations, key) ? annotations[key] : undefined;
}

const cachedHostUsers = new WeakMap<object, HostUsers>();

/** The users of the host that a ConfigMap lists, read once for each version of it; none if the ConfigMap does not exist. */
export function parseHostUsers(
  configMap: DeepReadonly<{ data?: Record<string, string> | undefined }> | undefined,
): HostUsers {
  if (configMap === undefined) return { persons: new Map(), problems: ['it does not exist'] };
  const before = cachedHostUsers.get(configMap);
  if (before !== undefined) return before;
  const text = configMap.data?.[HOST_USERS_KEY];
  const users =
    text === undefined ? { persons: new Map(), problems: [`it has no key ${HOST_USERS_KEY}`] } : hostUsersOf(text);
  cachedHostUsers.set(configMap, users);
  return users;
}
