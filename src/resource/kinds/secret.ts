import { z } from 'zod';
import { defineKind, type ObjectOf } from '../kind.ts';
import { dataKeySchema } from './config-map.ts';

export const secretKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  description: 'Credentials, as bytes by name.',
  sensitive: true,
  fields: {
    type: z.string().default('Opaque'),
    immutable: z.boolean().optional(),
    data: z
      .record(
        dataKeySchema,
        z.string().regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/, 'must be base64'),
      )
      .optional()
      .describe('Values in base64.'),
    stringData: z.record(dataKeySchema, z.string()).optional().describe('Values as text; merged into data.'),
  },
  normalize({ stringData, ...secret }) {
    if (stringData === undefined) return secret;
    const encoded = Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    return { ...secret, data: { ...secret.data, ...Object.fromEntries(encoded) } };
  },
  selectableFields: [{ path: 'type' }],
  printerColumns: [
    { name: 'Name', type: 'string', value: (object) => object.metadata.name },
    { name: 'Type', type: 'string', value: (object) => object.type },
    { name: 'Data', type: 'integer', value: (object) => Object.keys(object.data ?? {}).length },
    { name: 'Age', type: 'date', value: (object) => object.metadata.creationTimestamp },
  ],
});

export type Secret = ObjectOf<typeof secretKind>;

/** One value of a Secret as text; undefined if it has no such key. */
export function secretText(secret: Secret, key: string): string | undefined {
  const { data } = secret;
  const encoded = data !== undefined && Object.hasOwn(data, key) ? data[key] : undefined;
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString('utf8');
}
