import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { Client } from '../../resource/client/client.ts';
import { type Secret, secretKind } from '../../resource/kinds/core/secret.ts';
import type { Stored } from '../../resource/object/object.ts';

/** Reads a Secret; undefined if it does not exist. The refusal of a cluster names the command that permits it. */
export async function findSecret(
  client: Client,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  signal?: AbortSignal,
): Promise<Stored<Secret> | undefined> {
  try {
    return await client.find(secretKind, { namespace, name }, signal === undefined ? {} : { signal });
  } catch (error) {
    throw permitted(error, namespace);
  }
}

/** Adds the command that permits Sluice to read the Secrets of a namespace, as docs/install.md has it, to the refusal of a cluster. */
function permitted(error: unknown, namespace: string): unknown {
  if (!isSluiceError(error, 'Refused')) return error;
  const [, account] = /User "system:serviceaccount:([a-z0-9.-]+:[a-z0-9.-]+)"/.exec(error.message) ?? [];
  if (account === undefined) return error;
  const command = `kubectl create rolebinding sluice-git-credentials --namespace ${namespace} --clusterrole=sluice-git-credentials --serviceaccount=${account}`;
  return new SluiceError('Refused', `${error.message}; permit it: ${command}`, { cause: error });
}
