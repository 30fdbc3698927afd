import { z } from 'zod';
import { type FieldCause, invalidValue } from '../../object/invalid-object.ts';
import type { ObjectMeta } from '../../object/object.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { serverTimeSchema } from '../common/time-schema.ts';
import { objectReferenceSchema } from './object-reference.ts';

interface Times {
  readonly metadata: ObjectMeta;
  readonly series?: { readonly lastObservedTime?: string | null | undefined } | null | undefined;
  readonly firstTimestamp?: string | null | undefined;
  readonly lastTimestamp?: string | null | undefined;
  readonly eventTime?: string | null | undefined;
}

interface EventPlace {
  readonly metadata: ObjectMeta;
  readonly involvedObject: { readonly namespace?: string | undefined };
}

/** The last time that an event contains, RFC 3339; recorders of events.k8s.io/v1 write series only. */
export function lastSeen(event: Times): string | undefined {
  return (
    event.series?.lastObservedTime ??
    event.lastTimestamp ??
    event.eventTime ??
    event.firstTimestamp ??
    event.metadata.creationTimestamp
  );
}

/** The content of events, under the names of the core group. */
export const eventFields = {
  involvedObject: objectReferenceSchema.describe('The object that the event is about.'),
  type: z.enum(['Normal', 'Warning']).default('Normal').describe('Normal or Warning.'),
  reason: z.string().default('').describe('What happened, as one word in CamelCase.'),
  message: z.string().default('').describe('What happened, for people.'),
  action: z.string().optional().describe('What was done or has failed.'),
  count: z.int32().optional().describe('How often it happened.'),
  firstTimestamp: serverTimeSchema.describe('When it first happened.'),
  lastTimestamp: serverTimeSchema.describe('When it last happened.'),
  eventTime: serverTimeSchema.describe('When it first happened, with microseconds.'),
  series: z
    .object({
      count: z.int32().optional().describe('How often it happened in the series.'),
      lastObservedTime: serverTimeSchema.describe('When it last happened, with microseconds.'),
    })
    .nullish()
    .describe('If it keeps happening: how often and until when.'),
  related: objectReferenceSchema.nullish().describe('A second object that has to do with it.'),
  source: z
    .object({
      component: z.string().optional().describe('Name of the program.'),
      host: z.string().optional().describe('Name of the machine.'),
    })
    .optional()
    .describe('Who reported the event.'),
  reportingComponent: z.string().optional().describe('Name of the controller that reported the event.'),
  reportingInstance: z.string().optional().describe('Which instance of the controller reported it.'),
};

export const eventKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  shortNames: ['ev'],
  description: 'Something that happened to an object, for people to read.',
  fields: eventFields,
  strategy: { validate: namespaceCauses },
  selectableFields: [
    { path: 'involvedObject.apiVersion' },
    { path: 'involvedObject.kind' },
    { path: 'involvedObject.namespace' },
    { path: 'involvedObject.name' },
    { path: 'involvedObject.uid' },
    { path: 'involvedObject.resourceVersion' },
    { path: 'involvedObject.fieldPath' },
    { path: 'reportingComponent' },
    { path: 'reason' },
    { path: 'type' },
  ],
  printerColumns: [
    { name: 'Last Seen', type: 'date', description: 'When it last happened.', value: lastSeen },
    { name: 'Type', type: 'string', value: (object) => object.type },
    { name: 'Reason', type: 'string', value: (object) => object.reason },
    {
      name: 'Object',
      type: 'string',
      value: ({ involvedObject }) => `${(involvedObject.kind ?? '').toLowerCase()}/${involvedObject.name ?? ''}`,
    },
    { name: 'Subobject', type: 'string', priority: 1, value: (object) => object.involvedObject.fieldPath },
    {
      name: 'Source',
      type: 'string',
      priority: 1,
      value: ({ source, reportingComponent }) =>
        [source?.component ?? reportingComponent, source?.host].filter(Boolean).join(', '),
    },
    { name: 'Message', type: 'string', value: (object) => object.message.trim() },
    {
      name: 'First Seen',
      type: 'date',
      priority: 1,
      value: (object) => object.firstTimestamp ?? object.eventTime ?? object.metadata.creationTimestamp,
    },
    { name: 'Count', type: 'integer', priority: 1, value: (object) => object.series?.count ?? object.count ?? 1 },
    { name: 'Name', type: 'string', priority: 1, value: (object) => object.metadata.name },
  ],
});

export type Event = ObjectOf<typeof eventKind>;

/** An event lies where its object lies, so that who may see the one may see the other. */
function namespaceCauses({ metadata, involvedObject }: EventPlace): FieldCause[] {
  const { namespace = '' } = involvedObject;
  if (namespace === '' || metadata.namespace === undefined || namespace === metadata.namespace) return [];
  return [invalidValue(['involvedObject', 'namespace'], namespace, 'does not match event.namespace')];
}
