import { SluiceError } from '../../foundation/sluice-error.ts';
import { webhookPath } from '../../server/webhooks/webhook-path.ts';
import { WEBHOOK_SECRET_KEY } from '../../server/webhooks/webhook-secrets.ts';
import type { Access } from '../access/access.ts';
import { putSecret, readSecretFile } from './put-secret.ts';

/** Secrets that a registration makes for webhooks are named like this. */
export const WEBHOOK_SECRET_SUFFIX = '-webhook';

/** Shorter ones can be guessed by who has seen one message. */
const SHORTEST = 16;

/** Reads the secret of a webhook; undefined if no file is given. Throws InvalidInput if it is too short. */
export async function readWebhookSecret(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const secret = await readSecretFile('the webhook secret', file);
  if (secret.split(/\r?\n/).every((line) => line.length >= SHORTEST)) return secret;
  throw new SluiceError(
    'InvalidInput',
    `the webhook secret in ${file} must have at least ${SHORTEST} characters; make one with: openssl rand -hex 32`,
  );
}

/** Makes or replaces the Secret of a repository's webhook; see putSecret. */
export function writeWebhookSecret(access: Access, repository: string, secret: string): ReturnType<typeof putSecret> {
  const name = `${repository}${WEBHOOK_SECRET_SUFFIX}`;
  return putSecret(access, { name, type: 'Opaque', stringData: { [WEBHOOK_SECRET_KEY]: secret } });
}

/** Returns the settings to enter at the Git host, as far as they are known here. */
export function webhookAddressText({ server, namespace }: Access, repository: string): string {
  const path = webhookPath({ namespace, name: repository });
  if (server === undefined) return `${path}, at the address where "sluice up" serves`;
  return `${server}${path}, or this path at the address under which the host reaches it`;
}
