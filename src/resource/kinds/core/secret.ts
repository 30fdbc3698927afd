import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { dataKeySchema } from './config-map.ts';
import { sizeCauses } from './data-size.ts';
import { sealedCauses } from './sealed-data.ts';
import { typeCauses } from './secret-types.ts';

export const secretKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  description: 'Credentials, as bytes by name.',
  sensitive: true,
  fields: {
    type: z.string().default('Opaque').describe('Type of the Secret. Immutable.'),
    immutable: z.boolean().optional().describe('If true, data and this field cannot be updated.'),
    data: z
      .record(
        dataKeySchema,
        z.string().regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/, 'must be base64'),
      )
      .optional()
      .describe('Secret values in base64, by key.'),
    stringData: z
      .record(dataKeySchema, z.string())
      .optional()
      .describe('Secret values as text, by key; write-only, merged into data.'),
  },
  immutableFields: ['type'],
  strategy: {
    canonicalize({ stringData, ...given }) {
      // Clients written in Go send an empty text for a type that they do not set.
      const secret = given.type === '' ? { ...given, type: 'Opaque' } : given;
      if (stringData === undefined) return secret;
      const encoded = Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
      return { ...secret, data: { ...secret.data, ...Object.fromEntries(encoded) } };
    },
    validate: (secret) => [...sizeCauses('data', undefined, secret.data), ...typeCauses(secret)],
    validateUpdate: (old, next) => sealedCauses(old, next, ['data']),
  },
  selectableFields: [{ path: 'type' }],
  printerColumns: [
    NAME_COLUMN,
    { name: 'Type', type: 'string', value: (object) => object.type },
    // A number, which Kubernetes declares so.
    { name: 'Data', type: 'string', value: (object) => Object.keys(object.data ?? {}).length },
    AGE_COLUMN,
  ],
});

export type Secret = ObjectOf<typeof secretKind>;

/** One value of a Secret as text; undefined if it has no such key. */
export function secretText(secret: Secret, key: string): string | undefined {
  const { data } = secret;
  const encoded = data !== undefined && Object.hasOwn(data, key) ? data[key] : undefined;
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString('utf8');
}
