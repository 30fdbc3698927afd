import { valueIn } from '../../../controllers/notification/secret-value.ts';
import type { GitHubCredentials } from '../../forge/github/github-client.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { findSecret } from '../../package/upstream/find-secret.ts';
import type { Client } from '../../resource/client/client.ts';
import { type Secret, secretText } from '../../resource/kinds/core/secret.ts';

// The keys that Argo CD and Flux have for the same, so that one Secret serves all of them.
const APP_ID = 'githubAppID';
const INSTALLATION_ID = 'githubAppInstallationID';
const PRIVATE_KEY = 'githubAppPrivateKey';

/** Reads an App from a Secret that has one, and else a token. Errors name the Secret and the key, never the value. */
export async function githubCredentials(
  client: Client,
  namespace: string,
  secretRef: { readonly name: string; readonly key: string },
  use: string,
  signal: AbortSignal,
): Promise<GitHubCredentials> {
  const { name, key } = secretRef;
  const secret = await findSecret(client, { namespace, name }, signal);
  return credentialsIn(secret, key, `Secret ${namespace}/${name}, ${use},`);
}

/** The same of a Secret that was read already; undefined if it does not exist. `where` begins its errors. */
export function credentialsIn(secret: Secret | undefined, key: string, where: string): GitHubCredentials {
  const [id, installation] = [APP_ID, INSTALLATION_ID].map((part) => {
    const text = secret === undefined ? undefined : secretText(secret, part)?.trim();
    if (text === undefined || text === '') return undefined;
    if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
    throw new SluiceError('InvalidInput', `${where} has no number for the key ${part}; put it there`);
  });
  if (id === undefined) return { token: valueIn(secret, key, where) };
  return { app: { id, privateKey: valueIn(secret, PRIVATE_KEY, where), installation } };
}
