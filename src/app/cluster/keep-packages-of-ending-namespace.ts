import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Client } from '../../resource/client/client.ts';
import { namespaceKind } from '../../resource/kinds/core/namespace.ts';
import type { Admission } from '../../server/handlers/handler.ts';

/**
 * Refuses to delete packages in a namespace that is being deleted. The namespace controller of a cluster deletes the objects of all kinds in
 * any order, and package revisions are a view of Git, where drafts would be lost: the namespace ends once its Repository objects are deleted.
 * The controller tries again what was refused.
 */
export function keepPackagesOfEndingNamespace(client: Client): Admission {
  return async ({ operation, kind, object }) => {
    if (operation !== 'delete') return;
    const { name, namespace = '' } = object.metadata;
    const found = await client.find(namespaceKind, { name: namespace });
    if (found?.metadata.deletionTimestamp === undefined) return;
    throw new SluiceError(
      'Conflict',
      `${kind.plural} ${JSON.stringify(name)} was not deleted: namespace ${namespace} is being deleted, and packages stay in Git; delete drafts before the namespace`,
      { details: { name, group: kind.group, kind: kind.plural } },
    );
  };
}
