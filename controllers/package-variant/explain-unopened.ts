import { nearMisses } from '../../src/foundation/text/near-misses.ts';
import { listCommand, notOpenYet } from '../../src/package/store/store-errors.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';

/** Why a repository is not open: it is no failure while it is only being opened, or about to be. */
export async function explainUnopened(
  client: Client,
  key: { readonly namespace: string; readonly name: string },
): Promise<{ readonly message: string; readonly isOpening: boolean }> {
  const { namespace, name } = key;
  const found = await client.find(repositoryKind, key);
  if (found === undefined) {
    const { items } = await client.list(repositoryKind, { namespace });
    const near = nearMisses(
      name,
      items.map(({ metadata }) => metadata.name),
    );
    const hint = near.length === 0 ? `see "${listCommand(namespace)}"` : `did you mean ${near.join(' or ')}?`;
    return { message: `repository ${name} is not registered in namespace ${namespace}; ${hint}`, isOpening: false };
  }
  const ready = findCondition(found.status?.conditions, 'Ready');
  if (ready?.status === 'False' && ready.reason === 'Error')
    return { message: `repository ${name} cannot be opened: ${ready.message}`, isOpening: false };
  return { message: notOpenYet(`${namespace}/${name}`).message, isOpening: true };
}
