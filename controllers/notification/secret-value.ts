import { isSluiceError, SluiceError } from '../../src/foundation/sluice-error.ts';
import { trimEndOf } from '../../src/foundation/text/trim-characters.ts';
import { findSecret } from '../../src/package/upstream/find-secret.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type Secret, secretText } from '../../src/resource/kinds/core/secret.ts';
import type { Notification } from '../../src/resource/kinds/sluice/notification.ts';
import { DEFAULT_NAMESPACE, type Stored } from '../../src/resource/object/object.ts';

/** Reads one value of a Secret in the namespace of the object that refers to it. Errors name the Secret and the key, never the value. */
export async function secretValue(
  client: Client,
  namespace: string,
  { name, key }: { readonly name: string; readonly key: string },
  use: string,
  signal: AbortSignal,
): Promise<string> {
  const secret = await findSecret(client, { namespace, name }, signal);
  return valueIn(secret, key, `Secret ${namespace}/${name}, ${use},`);
}

/** The same of a Secret that was read already; undefined if it does not exist. `where` begins its errors. */
export function valueIn(secret: Secret | undefined, key: string, where: string): string {
  if (secret === undefined) throw new SluiceError('NotFound', `${where} does not exist; create it with the key ${key}`);
  const value = trimEndOf(secretText(secret, key) ?? '', '\r\n');
  if (value === '') throw new SluiceError('InvalidInput', `${where} has no value for the key ${key}; put it there`);
  return value;
}

/** Why a Secret that a Notification refers to cannot be used, before an event needs it; undefined if all can. */
export async function secretProblem(
  client: Client,
  { metadata: { namespace = DEFAULT_NAMESPACE }, spec: { webhook, commitStatus } }: Stored<Notification>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const references = {
    'webhook.urlSecretRef': webhook?.urlSecretRef,
    'webhook.secretRef': webhook?.secretRef,
    'webhook.caSecretRef': webhook?.caSecretRef,
    'commitStatus.secretRef': commitStatus?.secretRef,
  };
  for (const [field, reference] of Object.entries(references)) {
    if (reference === undefined) continue;
    try {
      await secretValue(client, namespace, reference, `which spec.${field} refers to`, signal);
    } catch (error) {
      if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'InvalidInput')) return error.message;
      throw error;
    }
  }
  return undefined;
}
