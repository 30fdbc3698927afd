import { secretValue } from '../../../controllers/notification/secret-value.ts';
import type { GitHubCredentials } from '../../forge/github/github-client.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Client } from '../../resource/client/client.ts';
import { secretKind, secretText } from '../../resource/kinds/core/secret.ts';

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
  const { name } = secretRef;
  const secret = await client.find(secretKind, { namespace, name }, { signal });
  const [id, installation] = [APP_ID, INSTALLATION_ID].map((key) => {
    const text = secret === undefined ? undefined : secretText(secret, key)?.trim();
    if (text === undefined || text === '') return undefined;
    if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
    throw new SluiceError(
      'InvalidInput',
      `Secret ${namespace}/${name}, ${use}, has no number for the key ${key}; put it there`,
    );
  });
  if (id === undefined) return { token: await secretValue(client, namespace, secretRef, use, signal) };
  const privateKey = await secretValue(client, namespace, { name, key: PRIVATE_KEY }, use, signal);
  return { app: { id, privateKey, installation } };
}
