import { z } from 'zod';
import { withVisibleDirection } from '../../../foundation/text/direction.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { reasonTextSchema } from './approval-schema.ts';

const MAX_USER_CHARACTERS = 253;

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/**
 * Field in the list of resources of the group of packages: the namespace whose freezes are in force in all, for clients. The kube-apiserver
 * passes that document on as Sluice serves it.
 */
export const SYSTEM_NAMESPACE_FIELD = 'sluice.dev/system-namespace';

export const freezeKind = defineKind({
  group: 'sluice.dev',
  version: 'v1alpha1',
  kind: 'Freeze',
  plural: 'freezes',
  categories: ['sluice', 'all'],
  description:
    'Stops all approvals, waves and deliveries in its namespace at once; in the namespace of Sluice itself, those of all namespaces.',
  spec: z
    .object({
      reason: reasonTextSchema.describe('Why, for the users who wait.'),
      until: z
        .string()
        .regex(RFC3339, 'must be a time in RFC 3339, such as 2026-01-02T15:04:05Z')
        .refine((text) => !Number.isNaN(Date.parse(text)), 'must be a time in RFC 3339, such as 2026-01-02T15:04:05Z')
        .meta({ format: 'date-time' })
        .optional()
        .describe('Time at which it ends, in RFC 3339. Without it, it ends when the object is deleted.'),
      startedBy: z
        .string()
        .min(1)
        .max(MAX_USER_CHARACTERS)
        .regex(/^[^\x00-\x1f\x7f-\x9f]+$/, 'must not contain control characters')
        .optional()
        .describe(
          'User who started it. The API server of Sluice records the authenticated user; elsewhere it is what the client reports. Informative.',
        ),
    })
    .describe('Reason and end.'),
  strategy: {
    withCreator: (freeze, user, old) => {
      const { startedBy: _reported, ...spec } = freeze.spec;
      const startedBy = old === undefined ? user.slice(0, MAX_USER_CHARACTERS) : old.spec.startedBy;
      return { ...freeze, spec: { ...spec, ...(startedBy === undefined ? {} : { startedBy }) } };
    },
  },
  printerColumns: [
    NAME_COLUMN,
    {
      name: 'Reason',
      type: 'string',
      jsonPath: '.spec.reason',
      value: (object) => withVisibleDirection(object.spec.reason),
    },
    { name: 'Until', type: 'string', jsonPath: '.spec.until', value: (object) => object.spec.until ?? '' },
    {
      name: 'By',
      type: 'string',
      jsonPath: '.spec.startedBy',
      value: (object) => withVisibleDirection(object.spec.startedBy ?? ''),
    },
    AGE_COLUMN,
  ],
});

export type Freeze = ObjectOf<typeof freezeKind>;
