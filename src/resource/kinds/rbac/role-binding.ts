import { z } from 'zod';
import { type FieldCause, forbidden, invalidValue, requiredValue } from '../../object/invalid-object.ts';
import { DNS_LABEL, followsRule, PATH_SEGMENT } from '../../object/name-rules.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { PrinterColumn } from '../../schema/kind-schema.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { RBAC_GROUP } from './role.ts';

const RBAC = { group: RBAC_GROUP, version: 'v1', nameRule: PATH_SEGMENT } as const;

const subject = z.object({
  kind: z.enum(['User', 'Group', 'ServiceAccount']).describe('Kind of the subject: User, Group or ServiceAccount.'),
  apiGroup: z.string().optional().describe('API group of the kind. Optional.'),
  name: z.string().min(1).describe('Name of the subject.'),
  namespace: z.string().optional().describe('Namespace of the service account.'),
});

type Subject = Readonly<z.output<typeof subject>>;

const subjects = z
  .array(subject)
  .optional()
  .meta({ 'x-kubernetes-list-type': 'atomic' })
  .describe('Subjects that the role is granted to.');

function roleRef<const Kinds extends readonly string[]>(kinds: Kinds) {
  return z
    .object({
      apiGroup: z
        .enum([RBAC_GROUP, ''])
        .default(RBAC_GROUP)
        .transform(() => RBAC_GROUP)
        .describe('API group of the role.'),
      kind: z.enum(kinds).describe(`Kind of the role: ${kinds.join(' or ')}.`),
      name: z.string().min(1).describe('Name of the role.'),
    })
    .meta({ 'x-kubernetes-map-type': 'atomic' })
    .describe('Role that is granted. Immutable: to change it, delete and recreate the binding.');
}

interface Binding {
  readonly subjects?: readonly Subject[] | undefined;
  readonly roleRef: { readonly kind: string; readonly name: string };
}

/** Fills in the API groups, which users leave out. */
function withGroups<T extends Binding>(binding: T): T {
  if (binding.subjects === undefined) return binding;
  const known = binding.subjects.map((entry) =>
    entry.kind === 'ServiceAccount' || (entry.apiGroup ?? '') !== '' ? entry : { ...entry, apiGroup: RBAC_GROUP },
  );
  return { ...binding, subjects: known };
}

function clusterSubjectCauses(binding: Binding): FieldCause[] {
  const unplaced = (binding.subjects ?? []).flatMap(({ kind, namespace = '' }, index) =>
    kind === 'ServiceAccount' && namespace === '' ? [requiredValue(['subjects', index, 'namespace'])] : [],
  );
  return [...subjectCauses(binding), ...unplaced];
}

/** A service account without a namespace is one of the namespace of the binding. */
function subjectCauses({ subjects: list = [] }: Binding): FieldCause[] {
  return list.flatMap((entry, index) => {
    const path = ['subjects', index];
    const { kind, apiGroup = '', namespace = '' } = entry;
    const causes: FieldCause[] = [];
    const expected = kind === 'ServiceAccount' ? '' : RBAC_GROUP;
    if (apiGroup !== expected)
      causes.push(invalidValue([...path, 'apiGroup'], apiGroup, `must be ${JSON.stringify(expected)} for a ${kind}`));
    if (kind !== 'ServiceAccount') {
      if (namespace !== '') causes.push(forbidden([...path, 'namespace'], `a ${kind} has no namespace`));
    } else if (namespace !== '' && !followsRule(namespace, DNS_LABEL))
      causes.push(invalidValue([...path, 'namespace'], namespace, DNS_LABEL.rule));
    return causes;
  });
}

function namesOf({ subjects: list = [] }: Binding, kind: Subject['kind']): string {
  const chosen = list.filter((entry) => entry.kind === kind);
  return chosen
    .map((entry) => (kind === 'ServiceAccount' ? `${entry.namespace ?? ''}/${entry.name}` : entry.name))
    .join(', ');
}

const COLUMNS: readonly PrinterColumn<never>[] = [
  NAME_COLUMN,
  { name: 'Role', type: 'string', value: ({ roleRef: role }: Binding) => `${role.kind}/${role.name}` },
  AGE_COLUMN,
  { name: 'Users', type: 'string', priority: 1, value: (binding: Binding) => namesOf(binding, 'User') },
  { name: 'Groups', type: 'string', priority: 1, value: (binding: Binding) => namesOf(binding, 'Group') },
  {
    name: 'ServiceAccounts',
    type: 'string',
    priority: 1,
    value: (binding: Binding) => namesOf(binding, 'ServiceAccount'),
  },
];

export const roleBindingKind = defineKind({
  ...RBAC,
  kind: 'RoleBinding',
  plural: 'rolebindings',
  description: 'Gives a role to users, groups and service accounts in one namespace.',
  fields: { subjects, roleRef: roleRef(['Role', 'ClusterRole']) },
  strategy: { canonicalize: withGroups, validate: subjectCauses },
  immutableFields: ['roleRef'],
  printerColumns: COLUMNS,
});

export const clusterRoleBindingKind = defineKind({
  ...RBAC,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  namespaced: false,
  description: 'Gives a role to users, groups and service accounts everywhere.',
  fields: { subjects, roleRef: roleRef(['ClusterRole']) },
  strategy: { canonicalize: withGroups, validate: clusterSubjectCauses },
  immutableFields: ['roleRef'],
  printerColumns: COLUMNS,
});
