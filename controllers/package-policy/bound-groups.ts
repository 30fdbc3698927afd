import type { Client } from '../../src/resource/client/client.ts';
import { clusterRoleBindingKind, roleBindingKind } from '../../src/resource/kinds/rbac/role-binding.ts';

/** The groups that bindings of roles name, in a namespace and in all of them. */
export async function boundGroups(client: Pick<Client, 'list'>, namespace: string): Promise<ReadonlySet<string>> {
  const [inNamespace, inAll] = await Promise.all([
    client.list(roleBindingKind, { namespace }),
    client.list(clusterRoleBindingKind),
  ]);
  const subjects = [...inNamespace.items, ...inAll.items].flatMap((one) => one.subjects ?? []);
  return new Set(subjects.flatMap(({ kind, name }) => (kind === 'Group' ? name : [])));
}
