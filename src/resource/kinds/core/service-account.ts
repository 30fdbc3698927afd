import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { objectReferenceSchema } from './object-reference.ts';

export const serviceAccountKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  shortNames: ['sa'],
  description: 'An account for a program.',
  fields: {
    secrets: z
      .array(objectReferenceSchema.extend({ name: z.string().describe('Name of the Secret.') }))
      .optional()
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
      .describe('Secrets that the service account may use.'),
    imagePullSecrets: z
      .array(z.object({ name: z.string().optional().describe('Name of the Secret.') }))
      .optional()
      .describe('Secrets with credentials for pulling images.'),
    automountServiceAccountToken: z
      .boolean()
      .optional()
      .describe('Whether pods of the service account mount its token by default.'),
  },
  printerColumns: [
    NAME_COLUMN,
    { name: 'Secrets', type: 'integer', value: (object) => object.secrets?.length ?? 0 },
    AGE_COLUMN,
  ],
});
