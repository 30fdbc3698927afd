import type { User } from '../authentication/user.ts';
import { RbacAuthorizer } from './rbac-authorizer.ts';
import { RbacIndex } from './rbac-index.ts';
import type { ClusterRole, PolicyRule, RbacKind, Role, RoleBinding, Subject } from './rbac-objects.ts';

const apiVersion = 'rbac.authorization.k8s.io/v1';

export function user(name: string, ...groups: string[]): User {
  return { name, groups };
}

export function role(namespace: string, name: string, ...rules: PolicyRule[]): Role {
  return { apiVersion, kind: 'Role', metadata: { namespace, name }, rules };
}

export function clusterRole(name: string, rules: PolicyRule[], labels: Record<string, string> = {}): ClusterRole {
  return { apiVersion, kind: 'ClusterRole', metadata: { name, labels }, rules };
}

/** A binding in a namespace, or of the whole cluster for `''`; `ref` is `Role/name` or `ClusterRole/name`. */
export function binding(namespace: string, name: string, ref: string, ...subjects: Subject[]): RoleBinding {
  const [kind = '', roleName = ''] = ref.split('/');
  return {
    apiVersion,
    kind: namespace === '' ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: namespace === '' ? { name } : { namespace, name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: roleName },
    subjects,
  };
}

/** An index with these objects, and its authorizer. */
export function authorizerOf(...objects: (Role | ClusterRole | RoleBinding)[]) {
  const index = new RbacIndex();
  for (const object of objects) index.put(object.kind as RbacKind, object);
  return { index, authorizer: new RbacAuthorizer(index) };
}
