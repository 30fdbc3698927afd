import { z } from 'zod';
import { type FieldCause, invalidValue, REQUIRED_VALUE, requiredValue } from '../../object/invalid-object.ts';
import { PATH_SEGMENT } from '../../object/name-rules.ts';
import type { DeepReadonly } from '../../object/object.ts';
import { defineKind } from '../../schema/define-kind.ts';
import { labelSelectorSchema } from '../../selector/label-selector.ts';
import { CREATED_AT_COLUMN, NAME_COLUMN } from '../common/columns.ts';

/** The API group of roles and bindings. */
export const RBAC_GROUP = 'rbac.authorization.k8s.io';

const RBAC = { group: RBAC_GROUP, version: 'v1', nameRule: PATH_SEGMENT } as const;
const ATOMIC = { 'x-kubernetes-list-type': 'atomic' } as const;

const texts = z.array(z.string()).optional().meta(ATOMIC);

const policyRule = z.object({
  verbs: z
    .array(z.string())
    .min(1, REQUIRED_VALUE)
    .meta(ATOMIC)
    .describe('Allowed verbs: get, list, watch, create, update, patch, delete; * allows every verb.'),
  apiGroups: texts.describe('API groups of the resources; "" is the core group, * matches every group.'),
  resources: texts.describe(
    'Resources, such as packagerevisions or packagerevisions/approval; * matches every resource.',
  ),
  resourceNames: texts.describe('Names of the objects that the rule applies to. Empty: all objects.'),
  nonResourceURLs: texts.describe('Paths outside of the resource API, such as /metrics; the last character can be *.'),
});

type PolicyRule = DeepReadonly<z.output<typeof policyRule>>;

const rules = z
  .array(policyRule)
  .nullish()
  .transform((list) => list ?? [])
  .meta(ATOMIC)
  .describe('Rules of the role.');

/** A rule is for resources or for paths, and a namespaced role only for resources. */
function ruleCauses(list: readonly PolicyRule[], namespaced: boolean): FieldCause[] {
  return list.flatMap(({ nonResourceURLs = [], apiGroups = [], resources = [], resourceNames = [] }, index) => {
    const path = ['rules', index];
    if (nonResourceURLs.length === 0)
      return [
        ...(apiGroups.length === 0 ? [requiredValue([...path, 'apiGroups'])] : []),
        ...(resources.length === 0 ? [requiredValue([...path, 'resources'])] : []),
      ];
    const place = [...path, 'nonResourceURLs'];
    if (namespaced) return [invalidValue(place, nonResourceURLs, 'a role of a namespace is about resources only')];
    if (apiGroups.length + resources.length + resourceNames.length > 0)
      return [invalidValue(place, nonResourceURLs, 'a rule is about resources or about paths, not about both')];
    return [];
  });
}

export const roleKind = defineKind({
  ...RBAC,
  kind: 'Role',
  plural: 'roles',
  description: 'What may be done with objects of one namespace.',
  fields: { rules },
  strategy: { validate: (role) => ruleCauses(role.rules, true) },
  printerColumns: [NAME_COLUMN, CREATED_AT_COLUMN],
});

export const clusterRoleKind = defineKind({
  ...RBAC,
  kind: 'ClusterRole',
  plural: 'clusterroles',
  namespaced: false,
  description: 'What may be done with objects of all namespaces or of none.',
  fields: {
    rules,
    aggregationRule: z
      .object({
        clusterRoleSelectors: z
          .array(labelSelectorSchema)
          .optional()
          .meta(ATOMIC)
          .describe('Label selectors for the roles whose rules are combined.'),
      })
      .optional()
      .describe('Combines the rules of other roles. The server then manages the field rules.'),
  },
  strategy: { validate: (role) => ruleCauses(role.rules, false) },
  printerColumns: [NAME_COLUMN, CREATED_AT_COLUMN],
});
