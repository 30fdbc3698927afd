import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { sizeCauses } from './data-size.ts';
import { sealedCauses } from './sealed-data.ts';

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
    immutable: z.boolean().optional().describe('If true, data and this field cannot be updated.'),
    data: z.record(dataKeySchema, z.string()).optional().describe('Data as UTF-8 text, by key.'),
    binaryData: z.record(dataKeySchema, z.string()).optional().describe('Binary data in base64, by key.'),
  },
  strategy: {
    validate: ({ data, binaryData }) => sizeCauses('data', data, binaryData),
    validateUpdate: (old, next) => sealedCauses(old, next, ['data', 'binaryData']),
  },
  printerColumns: [
    NAME_COLUMN,
    {
      name: 'Data',
      // A number, which Kubernetes declares so.
      type: 'string',
      value: ({ data, binaryData }) => Object.keys(data ?? {}).length + Object.keys(binaryData ?? {}).length,
    },
    AGE_COLUMN,
  ],
});
