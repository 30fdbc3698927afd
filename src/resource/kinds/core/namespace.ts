import { z } from 'zod';
import { DNS_LABEL } from '../../object/name-rules.ts';
import { DEFAULT_NAMESPACE, type ObjectMeta } from '../../object/object.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { conditionsSchema } from '../common/condition-schema.ts';

/** Keeps a namespace until its objects are deleted. */
export const NAMESPACE_FINALIZER = 'kubernetes';

/** A Freeze in this namespace, or in that of `sluice serve`, is in force in all namespaces. */
export const SYSTEM_NAMESPACE = 'sluice-system';

/** Clients count on them. */
export const SYSTEM_NAMESPACES: readonly string[] = [DEFAULT_NAMESPACE, 'kube-system', SYSTEM_NAMESPACE];

const NAME_LABEL = 'kubernetes.io/metadata.name';

export const namespaceKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  shortNames: ['ns'],
  namespaced: false,
  description: 'A room for names: objects of two namespaces may have the same name.',
  nameRule: DNS_LABEL,
  spec: z
    .object({
      finalizers: z
        .array(z.string())
        .default([NAMESPACE_FINALIZER])
        .describe('Finalizers of the namespace. It is deleted when the list is empty.'),
    })
    .prefault({})
    .describe('Behaviour of the namespace.'),
  status: z
    .object({
      phase: z
        .enum(['Active', 'Terminating'])
        .optional()
        .describe('Lifecycle phase: Active, or Terminating while its objects are deleted.'),
      conditions: conditionsSchema.optional(),
    })
    .describe('Observed state of the namespace.'),
  strategy: {
    canonicalize: named,
    prepareForCreate: (namespace) => ({ ...named(namespace), status: { phase: 'Active' as const } }),
    // Namespaces that an earlier version stored have no finalizers.
    delaysDeletion: ({ spec }) => (spec?.finalizers ?? []).length > 0,
    deletionRefusal: ({ metadata }) =>
      SYSTEM_NAMESPACES.includes(metadata.name) ? 'this namespace may not be deleted' : undefined,
  },
  selectableFields: [{ path: 'status.phase' }],
  printerColumns: [
    NAME_COLUMN,
    { name: 'Status', type: 'string', description: 'Active or Terminating.', value: (object) => object.status?.phase },
    AGE_COLUMN,
  ],
});

export type Namespace = ObjectOf<typeof namespaceKind>;

/** Adds the name of a namespace as a label, which selectors use, unless the name is still to be generated. */
function named<T extends { readonly metadata: ObjectMeta }>(namespace: T): T {
  const { metadata } = namespace;
  if (metadata.name === '') return namespace;
  return { ...namespace, metadata: { ...metadata, labels: { ...metadata.labels, [NAME_LABEL]: metadata.name } } };
}
