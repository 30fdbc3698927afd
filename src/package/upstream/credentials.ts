import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { trimEndOf } from '../../foundation/text/trim-characters.ts';
import type { BasicCredentials, GitCredentials, SshCredentials } from '../../git/git-repository.ts';
import type { Client } from '../../resource/client/client.ts';
import { secretText } from '../../resource/kinds/core/secret.ts';
import { DEFAULT_NAMESPACE, type KubernetesObject } from '../../resource/object/object.ts';
import { findSecret } from './find-secret.ts';

/** Taken by the common hosts together with a token where no user name is given. */
const TOKEN_USER = 'x-access-token';

/** The first key counts; both names are in use, the second one in Secrets of the type kubernetes.io/ssh-auth. */
const PRIVATE_KEYS = ['identity', 'ssh-privatekey'] as const;

/**
 * Returns a function that reads the credentials of an object, called for every request, so that a renewed Secret is used at
 * once. A Secret contains `username` and `password`, or `bearerToken` (or `token`), which is sent as a password; for ssh
 * `identity` (or `ssh-privatekey`) and `known_hosts`; and `ca.crt` with trusted authorities. Undefined without a reference,
 * which a reference without a name is too. The messages name keys, never values. Rejects with Unavailable.
 */
export function credentialsOf(
  client: Client,
  owner: KubernetesObject,
  secretRef: { readonly name: string } | undefined,
): (() => Promise<GitCredentials>) | undefined {
  if (secretRef === undefined || secretRef.name === '') return undefined;
  const { namespace = DEFAULT_NAMESPACE, name } = owner.metadata;
  const secret = { namespace, name: secretRef.name };
  return async () => {
    try {
      return await secretCredentials(client, secret, `which ${owner.kind} ${namespace}/${name} refers to,`);
    } catch (error) {
      // A caller of the API would take NotFound for the package of its request, and Refused for its own rights.
      if (!isSluiceError(error) || error.code === 'Timeout') throw error;
      throw new SluiceError('Unavailable', error.message, { cause: error });
    }
  };
}

/**
 * Returns the credentials in a Secret; `relation` describes its purpose in messages. Throws NotFound, and InvalidInput if it
 * contains none.
 */
export async function secretCredentials(
  client: Client,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  relation: string,
): Promise<GitCredentials> {
  const where = `Secret ${namespace}/${name}, ${relation}`;
  const secret = await findSecret(client, { namespace, name });
  if (secret === undefined) {
    throw new SluiceError(
      'NotFound',
      `${where} does not exist; create it with username and password, or token, or for ssh with identity and known_hosts`,
    );
  }
  const text = (key: string) => {
    const value = secretText(secret, key);
    return value === undefined ? undefined : trimEndOf(value, '\r\n');
  };
  const basic = basicOf(text);
  const ssh = sshOf(text, where);
  const certificateAuthorities = text('ca.crt');
  if (basic === undefined && ssh === undefined && certificateAuthorities === undefined) {
    throw new SluiceError(
      'InvalidInput',
      `${where} has neither username and password nor bearerToken nor token, nor identity and known_hosts for ssh, nor ca.crt`,
    );
  }
  return {
    source: `Secret ${namespace}/${name}`,
    ...(basic === undefined ? {} : { basic }),
    ...(ssh === undefined ? {} : { ssh }),
    ...(certificateAuthorities === undefined ? {} : { certificateAuthorities }),
  };
}

type ReadText = (key: string) => string | undefined;

function basicOf(text: ReadText): BasicCredentials | undefined {
  const username = text('username');
  const password = text('password');
  if (username !== undefined && password !== undefined) return { username, password };
  const token = text('bearerToken') ?? text('token');
  return token === undefined ? undefined : { username: username ?? TOKEN_USER, password: token };
}

function sshOf(text: ReadText, where: string): SshCredentials | undefined {
  const key = PRIVATE_KEYS.find((name) => text(name) !== undefined);
  const privateKey = key === undefined ? undefined : text(key);
  if (privateKey === undefined) return undefined;
  const knownHosts = text('known_hosts');
  if (knownHosts !== undefined && knownHosts.trim() !== '') return { privateKey, knownHosts };
  throw new SluiceError(
    'InvalidInput',
    `${where} has ${key} but no known_hosts, without which any host could pass for the right one: print the host's key with "ssh-keyscan <host>", compare its fingerprint (ssh-keygen -lf -) with the one that the host publishes, and put the line into known_hosts`,
  );
}
