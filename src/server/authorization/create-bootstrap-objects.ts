import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Client } from '../../resource/client.ts';
import type { Kind } from '../../resource/kind.ts';
import { BOOTSTRAP_BINDINGS, BOOTSTRAP_ROLES } from './bootstrap-objects.ts';

/**
 * Creates the roles and bindings that every server starts with, where they are missing. What is there is left as it is, so
 * that people may change them. Errors as of `Client.create`, other than that an object is there.
 */
export async function createBootstrapObjects(
  client: Client,
  kinds: { readonly ClusterRole: Kind; readonly ClusterRoleBinding: Kind },
): Promise<void> {
  for (const [kind, objects] of [
    [kinds.ClusterRole, BOOTSTRAP_ROLES],
    [kinds.ClusterRoleBinding, BOOTSTRAP_BINDINGS],
  ] as const)
    for (const object of objects) await createIfMissing(client, kind, object);
}

async function createIfMissing(client: Client, kind: Kind, object: (typeof BOOTSTRAP_ROLES)[number]): Promise<void> {
  if ((await client.find(kind, { name: object.metadata.name })) !== undefined) return;
  try {
    await client.create(kind, object);
  } catch (error) {
    if (!isSluiceError(error, 'AlreadyExists')) throw error;
  }
}
