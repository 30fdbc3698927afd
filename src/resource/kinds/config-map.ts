import { z } from 'zod';
import { defineKind } from '../kind.ts';

/** A key of a ConfigMap or Secret: what may be a file name. */
export const dataKeySchema = z
  .string()
  .max(253)
  .regex(/^(?!__proto__$)(?!\.{1,2}$)[-._a-zA-Z0-9]+$/, 'must be letters, digits, "-", "_" or "."');

export const configMapKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  shortNames: ['cm'],
  description: 'Texts by name.',
  fields: {
    immutable: z.boolean().optional(),
    data: z.record(dataKeySchema, z.string()).optional(),
    binaryData: z.record(dataKeySchema, z.string()).optional().describe('Values in base64.'),
  },
  printerColumns: [
    { name: 'Name', type: 'string', value: (object) => object.metadata.name },
    { name: 'Data', type: 'integer', value: (object) => Object.keys(object.data ?? {}).length },
    { name: 'Age', type: 'date', value: (object) => object.metadata.creationTimestamp },
  ],
});
