import { repeatSilentRequest } from '../../foundation/concurrency/repeat-silent-request.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { generateSshKey } from '../../git/signing/generate-ssh-key.ts';
import type { Client } from '../../resource/client/client.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';

/** The Secret of the signing key, where the operator names no other one. */
export const SIGNING_KEY_NAME = 'sluice-signing-key';

/** Creates the Secret with a new key if there is none. Of two processes at the same time, the second uses the key of the first. */
export async function ensureSigningKey(client: Client, namespace: string): Promise<void> {
  const key = { namespace, name: SIGNING_KEY_NAME };
  if ((await repeatSilentRequest((signal) => client.find(secretKind, key, { signal }))) !== undefined) return;
  const identity = Buffer.from(generateSshKey(`sluice@${namespace}`)).toString('base64');
  try {
    const secret = { metadata: key, type: 'Opaque', data: { identity } };
    await repeatSilentRequest((signal) => client.create(secretKind, secret, { signal }));
  } catch (error) {
    if (!isSluiceError(error, 'AlreadyExists')) throw error;
  }
}
