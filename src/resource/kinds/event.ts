import { z } from 'zod';
import { defineKind, type ObjectOf } from '../kind.ts';

export const eventKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  shortNames: ['ev'],
  description: 'Something that happened to an object, for people to read.',
  fields: {
    involvedObject: z.object({
      apiVersion: z.string().optional(),
      kind: z.string().optional(),
      namespace: z.string().optional(),
      name: z.string().optional(),
      uid: z.string().optional(),
      resourceVersion: z.string().optional(),
      fieldPath: z.string().optional(),
    }),
    type: z.enum(['Normal', 'Warning']).default('Normal'),
    reason: z.string().default(''),
    message: z.string().default(''),
    action: z.string().optional(),
    count: z.int().optional(),
    firstTimestamp: z.string().nullish(),
    lastTimestamp: z.string().nullish(),
    eventTime: z.string().nullish(),
    source: z.object({ component: z.string().optional(), host: z.string().optional() }).optional(),
    reportingComponent: z.string().optional(),
    reportingInstance: z.string().optional(),
  },
  selectableFields: [
    { path: 'involvedObject.apiVersion' },
    { path: 'involvedObject.kind' },
    { path: 'involvedObject.namespace' },
    { path: 'involvedObject.name' },
    { path: 'involvedObject.uid' },
    { path: 'reason' },
    { path: 'type' },
  ],
  printerColumns: [
    { name: 'Last Seen', type: 'date', value: (object) => object.lastTimestamp ?? object.eventTime ?? undefined },
    { name: 'Type', type: 'string', value: (object) => object.type },
    { name: 'Reason', type: 'string', value: (object) => object.reason },
    {
      name: 'Object',
      type: 'string',
      value: ({ involvedObject }) => `${(involvedObject.kind ?? '').toLowerCase()}/${involvedObject.name ?? ''}`,
    },
    { name: 'Message', type: 'string', value: (object) => object.message },
    { name: 'Count', type: 'integer', priority: 1, value: (object) => object.count },
  ],
});

export type Event = ObjectOf<typeof eventKind>;
