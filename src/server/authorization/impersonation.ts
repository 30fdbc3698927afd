import type { IncomingMessage } from 'node:http';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { userNameProblem } from '../../resource/object/actor-name.ts';
import { AUTHENTICATED_GROUP, type User } from '../authentication/user.ts';
import type { Authorizer } from './authorizer.ts';
import { permission, requireAllowed } from './require-allowed.ts';

/** If these are repeated, a proxy or log may evaluate the request as another user than the server does. */
const SINGLE_HEADERS = ['impersonate-user', 'impersonate-uid'];
const EXTRA_PREFIX = 'impersonate-extra-';
const AUTHENTICATION_GROUP = 'authentication.k8s.io';
const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;
/** Groups and extra values; each one costs a decision. */
const MAX_IMPERSONATED_VALUES = 64;

/**
 * Returns the effective user of a request: its sender, or the user that its `Impersonate-…` headers contain. The sender must be
 * allowed to impersonate each part: the user, every group, the uid and every extra value.
 */
export async function effectiveUser(
  request: IncomingMessage,
  user: User,
  authorizer: Authorizer,
  signal: AbortSignal,
): Promise<User> {
  const wanted = readHeaders(request);
  if (wanted === undefined) return user;
  const problem = userNameProblem(wanted.name);
  if (problem !== undefined)
    throw new SluiceError('BadRequest', `user ${JSON.stringify(wanted.name)} cannot be impersonated: ${problem}`);
  const check = (about: Parameters<typeof permission>[2]) =>
    requireAllowed(authorizer, permission(user, 'impersonate', about), signal);
  const [, namespace, account] = SERVICE_ACCOUNT.exec(wanted.name) ?? [];
  if (namespace !== undefined && account !== undefined)
    await check({ resource: 'serviceaccounts', namespace, name: account });
  else await check({ resource: 'users', name: wanted.name });
  for (const name of wanted.groups) await check({ resource: 'groups', name });
  if (wanted.uid !== undefined) await check({ group: AUTHENTICATION_GROUP, resource: 'uids', name: wanted.uid });
  for (const [key, values] of Object.entries(wanted.extra))
    for (const name of values)
      await check({ group: AUTHENTICATION_GROUP, resource: 'userextras', subResource: key, name });
  const implied =
    namespace === undefined || wanted.groups.length > 0
      ? []
      : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  return {
    name: wanted.name,
    groups: [...new Set([...wanted.groups, ...implied, AUTHENTICATED_GROUP])],
    ...(wanted.uid === undefined ? {} : { uid: wanted.uid }),
    ...(Object.keys(wanted.extra).length === 0 ? {} : { extra: wanted.extra }),
  };
}

interface ImpersonatedUser {
  readonly name: string;
  readonly groups: readonly string[];
  readonly uid: string | undefined;
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

function readHeaders(request: IncomingMessage): ImpersonatedUser | undefined {
  const headers = request.headersDistinct;
  for (const header of SINGLE_HEADERS)
    if ((headers[header]?.length ?? 0) > 1)
      throw new SluiceError('BadRequest', `requests have at most one header ${header}; send each one once`);
  const name = headers['impersonate-user']?.[0] ?? '';
  const groups = headers['impersonate-group'] ?? [];
  const uid = headers['impersonate-uid']?.[0];
  // By entries, so that a key such as __proto__ is a key like any other.
  const extra = Object.fromEntries(
    Object.entries(headers)
      .filter(([header]) => header.startsWith(EXTRA_PREFIX))
      .map(([header, values = []]) => [decodeKey(header.slice(EXTRA_PREFIX.length)), values]),
  );
  const count = groups.length + Object.values(extra).flat().length;
  if (count > MAX_IMPERSONATED_VALUES)
    throw new SluiceError(
      'BadRequest',
      `more than ${MAX_IMPERSONATED_VALUES} groups and extra values are to be impersonated`,
    );
  if (name !== '') return { name, groups, uid, extra };
  if (count === 0 && uid === undefined) return undefined;
  throw new SluiceError(
    'BadRequest',
    'requests that impersonate groups, a uid or extra values must name a user as well',
  );
}

function decodeKey(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
