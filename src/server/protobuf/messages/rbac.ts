import { list, message, optional, part, required, text } from './message.ts';
import { labelSelector, objectMeta } from './meta.ts';

/** Messages of k8s.io/api, package rbac/v1. */

const policyRule = message({
  verbs: required(list(1, 'text')),
  apiGroups: list(2, 'text'),
  resources: list(3, 'text'),
  resourceNames: list(4, 'text'),
  nonResourceURLs: list(5, 'text'),
});

const rules = required(list(2, policyRule));

export const role = message({ metadata: part(1, objectMeta), rules });

export const clusterRole = message({
  metadata: part(1, objectMeta),
  rules,
  aggregationRule: optional(part(3, message({ clusterRoleSelectors: list(1, labelSelector) }))),
});

const subject = message({ kind: required(text(1)), apiGroup: text(2), name: required(text(3)), namespace: text(4) });

const roleRef = message({ apiGroup: required(text(1)), kind: required(text(2)), name: required(text(3)) });

/** A RoleBinding or a ClusterRoleBinding. */
export const roleBinding = message({
  metadata: part(1, objectMeta),
  subjects: list(2, subject),
  roleRef: part(3, roleRef),
});
