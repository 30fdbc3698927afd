import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { trimEndOf } from '../../src/foundation/text/trim-characters.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { secretKind, secretText } from '../../src/resource/kinds/core/secret.ts';

/** Reads one value of a Secret in the namespace of the object that refers to it. Errors name the Secret and the key, never the value. */
export async function secretValue(
  client: Client,
  namespace: string,
  { name, key }: { readonly name: string; readonly key: string },
  use: string,
  signal: AbortSignal,
): Promise<string> {
  const where = `Secret ${namespace}/${name}, ${use},`;
  const secret = await client.find(secretKind, { namespace, name }, { signal });
  if (secret === undefined) throw new SluiceError('NotFound', `${where} does not exist; create it with the key ${key}`);
  const value = trimEndOf(secretText(secret, key) ?? '', '\r\n');
  if (value === '') throw new SluiceError('InvalidInput', `${where} has no value for the key ${key}; put it there`);
  return value;
}
