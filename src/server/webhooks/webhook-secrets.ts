import type { Client } from '../../resource/client/client.ts';
import { type Secret, secretKind, secretText } from '../../resource/kinds/core/secret.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import type { ObjectKey } from '../../resource/object/object.ts';

/** Annotation of a Repository: the name of the Secret, in its namespace, that its webhook is signed with. */
export const WEBHOOK_SECRET_ANNOTATION = 'sluice.dev/webhook-secret';

/** The key under which Sluice writes it; `secret` is read as well. */
export const WEBHOOK_SECRET_KEY = 'token';

/** While a secret is being renewed, the old and the new one count. */
const MAX_SECRETS = 4;
const KEYS = [WEBHOOK_SECRET_KEY, 'secret'];
/** In the Secret with `githubAppID` and `githubAppPrivateKey`. */
const APP_KEY = 'githubAppWebhookSecret';

/**
 * Returns the secrets with which a webhook of a repository may be signed: the lines of the keys `token` and `secret`, without blank
 * ones. None if the repository does not exist or has no webhook; both take the same time.
 */
export async function webhookSecrets(client: Client, { namespace = '', name }: ObjectKey): Promise<readonly string[]> {
  const repository = await client.find(repositoryKind, { namespace, name });
  const secretName = repository?.metadata.annotations?.[WEBHOOK_SECRET_ANNOTATION];
  const secret = await client.find(secretKind, { namespace, name: secretName || name });
  return secretName ? linesOf(secret, KEYS) : [];
}

/** Returns the secrets with which the webhook of a GitHub App may be signed: the lines of the key `githubAppWebhookSecret` of its Secret. */
export async function appWebhookSecrets(client: Client, secret: ObjectKey): Promise<readonly string[]> {
  return linesOf(await client.find(secretKind, secret), [APP_KEY]);
}

function linesOf(secret: Secret | undefined, keys: readonly string[]): readonly string[] {
  if (secret === undefined) return [];
  return keys
    .flatMap((key) => (secretText(secret, key) ?? '').split(/\r?\n/))
    .filter((line) => line.trim() !== '')
    .slice(0, MAX_SECRETS);
}
