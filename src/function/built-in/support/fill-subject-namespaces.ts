import type { Resource } from '../../resource-list/resource.ts';
import { textAt } from './function-config.ts';

const RBAC = 'rbac.authorization.k8s.io';

/**
 * Writes the namespace of service accounts of the list into the subjects of role bindings that name them without one, as kustomize does
 * where it follows names. Kubernetes refuses such a subject.
 */
export function fillSubjectNamespaces(items: readonly Resource[]): void {
  const accounts = Map.groupBy(
    items.filter(({ group, kind, namespace }) => kind === 'ServiceAccount' && group === '' && Boolean(namespace)),
    ({ name }) => name,
  );
  if (accounts.size === 0) return;
  for (const item of items) {
    if (item.group !== RBAC || (item.kind !== 'RoleBinding' && item.kind !== 'ClusterRoleBinding')) continue;
    for (let at = 0; item.node(['subjects', at]) !== undefined; at++) {
      const field = (key: string) => textAt(item, ['subjects', at, key]);
      if (field('kind') !== 'ServiceAccount' || field('namespace') !== undefined) continue;
      const named = (accounts.get(field('name') ?? '') ?? []).filter(
        ({ namespace }) => item.kind === 'ClusterRoleBinding' || namespace === item.namespace,
      );
      const [account] = named;
      if (account?.namespace !== undefined && named.length === 1)
        item.set(['subjects', at, 'namespace'], account.namespace);
    }
  }
}
