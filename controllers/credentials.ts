import { SluiceError } from '../src/foundation/sluice-error.ts';
import type { GitCredentials } from '../src/git/git-repository.ts';
import type { Client } from '../src/resource/client.ts';
import { secretKind, secretText } from '../src/resource/kinds/secret.ts';
import { DEFAULT_NAMESPACE, type KubernetesObject } from '../src/resource/object.ts';

/** Taken by the common hosts together with a token where no user name is given. */
const TOKEN_USER = 'x-access-token';

/**
 * How to get the credentials that an object refers to, asked again for every request, so that a renewed Secret counts at once.
 * A Secret holds `username` and `password`, or `bearerToken` (or `token`), which is sent as a password. Undefined without a
 * reference, which a reference without a name is too. The messages name keys, never values.
 */
export function credentialsOf(
  client: Client,
  owner: KubernetesObject,
  secretRef: { readonly name: string } | undefined,
): (() => Promise<GitCredentials>) | undefined {
  if (secretRef === undefined || secretRef.name === '') return undefined;
  const { namespace = DEFAULT_NAMESPACE, name } = owner.metadata;
  const secret = { namespace, name: secretRef.name };
  return () => secretCredentials(client, secret, `which ${owner.kind} ${namespace}/${name} refers to,`);
}

/** The credentials in a Secret; `relation` says in messages what it is for. Throws NotFound, and InvalidInput if it holds none. */
export async function secretCredentials(
  client: Client,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  relation: string,
): Promise<GitCredentials> {
  const where = `Secret ${namespace}/${name}, ${relation}`;
  const secret = await client.find(secretKind, { namespace, name });
  if (secret === undefined) {
    throw new SluiceError('NotFound', `${where} does not exist; create it with username and password, or token`);
  }
  const text = (key: string) => secretText(secret, key)?.replace(/[\r\n]+$/, '');
  const username = text('username');
  const password = text('password');
  if (username !== undefined && password !== undefined) return { basic: { username, password } };
  const token = text('bearerToken') ?? text('token');
  if (token !== undefined) return { basic: { username: username ?? TOKEN_USER, password: token } };
  throw new SluiceError('InvalidInput', `${where} has neither username and password nor bearerToken nor token`);
}
