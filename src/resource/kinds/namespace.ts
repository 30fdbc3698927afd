import { z } from 'zod';
import { defineKind } from '../kind.ts';
import { DNS_LABEL } from '../name-rules.ts';
import { AGE_COLUMN, NAME_COLUMN } from './columns.ts';
import { conditionsSchema } from './condition-schema.ts';

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
      finalizers: z.array(z.string()).optional().describe('Names of those who empty the namespace before it goes.'),
    })
    .prefault({})
    .describe('What happens when the namespace is deleted.'),
  status: z
    .object({
      phase: z.enum(['Active', 'Terminating']).optional().describe('Active, or Terminating while it is emptied.'),
      conditions: conditionsSchema.optional(),
    })
    .describe('What is known of the namespace.'),
  selectableFields: [{ path: 'status.phase' }],
  printerColumns: [
    NAME_COLUMN,
    { name: 'Status', type: 'string', description: 'Active or Terminating.', value: (object) => object.status?.phase },
    AGE_COLUMN,
  ],
});
