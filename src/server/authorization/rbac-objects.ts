import type { KubernetesObject } from '../../resource/object/object.ts';
import type { LabelSelectorObject } from '../../resource/selector/label-selector.ts';

export { RBAC_GROUP } from '../../resource/kinds/rbac/role.ts';

/** The fields of the RBAC objects of Kubernetes that a decision needs. */

/**
 * One permission: every verb on every resource (or path) that it lists. An empty list matches nothing, except for names,
 * where it matches all.
 */
export interface PolicyRule {
  readonly verbs: readonly string[];
  /** `''` is the core group, `*` any. */
  readonly apiGroups?: readonly string[] | undefined;
  /** `packagerevisions`, `packagerevisions/approval`, `*`, `*` with a slash and a sub-resource. */
  readonly resources?: readonly string[] | undefined;
  /** Empty or absent: all objects. */
  readonly resourceNames?: readonly string[] | undefined;
  /** `/metrics`, or `/healthz/*` for all below. */
  readonly nonResourceURLs?: readonly string[] | undefined;
}

export interface Subject {
  /** `User`, `Group` or `ServiceAccount`; other values match no user. */
  readonly kind: string;
  readonly name: string;
  /** Of a service account; default: the binding's own. */
  readonly namespace?: string | undefined;
  readonly apiGroup?: string | undefined;
}

export interface RoleRef {
  readonly apiGroup?: string | undefined;
  /** `Role` or `ClusterRole`. */
  readonly kind: string;
  readonly name: string;
}

export interface Role extends KubernetesObject {
  readonly rules?: readonly PolicyRule[] | null | undefined;
}

export interface ClusterRole extends Role {
  readonly aggregationRule?:
    | { readonly clusterRoleSelectors?: readonly LabelSelectorObject[] | undefined }
    | null
    | undefined;
}

export interface RoleBinding extends KubernetesObject {
  readonly subjects?: readonly Subject[] | null | undefined;
  readonly roleRef: RoleRef;
}

/** The plural of a kind of roles or bindings. */
export const RBAC_PLURALS = {
  Role: 'roles',
  ClusterRole: 'clusterroles',
  RoleBinding: 'rolebindings',
  ClusterRoleBinding: 'clusterrolebindings',
} as const;

export type RbacKind = keyof typeof RBAC_PLURALS;
