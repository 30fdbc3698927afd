import { SluiceError } from '../../foundation/sluice-error.ts';
import { HOST_USERS_KEY } from '../../package/model/policy/host-users.ts';
import { ALLOWED_SIGNERS_KEY } from '../../package/model/policy/people.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { isAllowed, permission } from '../authorization/require-allowed.ts';
import type { PlannedWrite } from '../handlers/handler.ts';

type Texts = { readonly data?: Readonly<Record<string, string>> } | undefined;

/** The effect of each list, by its key. */
const EFFECTS: Readonly<Record<string, string>> = {
  [ALLOWED_SIGNERS_KEY]: 'whose signature is whose',
  [HOST_USERS_KEY]: 'who is which user of the Git host',
};

/**
 * Checks writes of ConfigMaps that list the keys of users, or their names at the Git host. The list maps signatures and pushes to
 * users, and so determines authors and approvers; changing it requires the right to update Repositories in the namespace. A Repository
 * can refer to a ConfigMap at any time, so every ConfigMap with such a list is checked.
 */
export async function checkUserKeys(
  { user, kind, operation, object, old }: PlannedWrite,
  authorizer: Authorizer,
): Promise<void> {
  if (kind.group !== configMapKind.group || kind.kind !== configMapKind.kind) return;
  const listOf = (written: unknown, key: string) => (written as Texts)?.data?.[key];
  const isChanged = (key: string) =>
    operation === 'delete' ? listOf(object, key) !== undefined : listOf(old, key) !== listOf(object, key);
  const changed = Object.keys(EFFECTS).find(isChanged);
  if (changed === undefined) return;
  const { name, namespace = '' } = object.metadata;
  const { group, plural: resource } = repositoryKind;
  if (await isAllowed(authorizer, permission(user, 'update', { group, resource, namespace, name: '' }))) return;
  const right = `the verb "update" on ${resource}.${group} in the namespace`;
  const message = `configmaps ${JSON.stringify(name)} is forbidden: its key ${changed} says ${EFFECTS[changed]} and takes ${right}, which User ${JSON.stringify(user.name)} does not have; use another key, or let an administrator write it`;
  throw new SluiceError('Refused', message, { details: { name, group: kind.group, kind: kind.plural } });
}
