import { z } from 'zod';
import { type FieldCause, invalidValue } from '../../object/invalid-object.ts';
import { DEFAULT_NAMESPACE, type ObjectMeta } from '../../object/object.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { microTimeSchema, serverTimeSchema } from '../common/time-schema.ts';
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
  involvedObject: objectReferenceSchema.describe('Object that the event is about.'),
  type: z.enum(['Normal', 'Warning']).default('Normal').describe('Type of the event: Normal or Warning.'),
  reason: z.string().default('').describe('Machine-readable reason for the event, one word in CamelCase.'),
  message: z.string().default('').describe('Human-readable description of the event.'),
  action: z.string().optional().describe('Action that was taken or failed.'),
  count: z.int32().optional().describe('Number of occurrences of the event.'),
  firstTimestamp: serverTimeSchema.describe('Time of the first occurrence.'),
  lastTimestamp: serverTimeSchema.describe('Time of the last occurrence.'),
  eventTime: microTimeSchema.describe('Time of the first occurrence, with microseconds.'),
  series: z
    .object({
      count: z.int32().optional().describe('Number of occurrences in the series.'),
      lastObservedTime: microTimeSchema.describe('Time of the last occurrence, with microseconds.'),
    })
    .nullish()
    .describe('Series of events that this event represents; absent for a single occurrence.'),
  related: objectReferenceSchema.nullish().describe('Secondary object that the event involves.'),
  source: z
    .object({
      component: z.string().optional().describe('Name of the component that reported the event.'),
      host: z.string().optional().describe('Name of the node that reported the event.'),
    })
    .optional()
    .describe('Component that reported the event.'),
  reportingComponent: z.string().optional().describe('Name of the controller that reported the event.'),
  reportingInstance: z.string().optional().describe('ID of the controller instance that reported the event.'),
};

export const eventKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  shortNames: ['ev'],
  description: 'Report of an event about an object.',
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

/** True if an event may be about an object of a namespace. Events about objects without one are in `default`. */
export function inNamespaceOf({ namespace }: ObjectMeta, ofObject: string): boolean {
  return namespace === undefined || namespace === (ofObject === '' ? DEFAULT_NAMESPACE : ofObject);
}

/** An event must be in the namespace of its object, so that users who may read the object may read the event. */
function namespaceCauses({ metadata, involvedObject }: EventPlace): FieldCause[] {
  const { namespace = '' } = involvedObject;
  return inNamespaceOf(metadata, namespace)
    ? []
    : [invalidValue(['involvedObject', 'namespace'], namespace, 'does not match event.namespace')];
}
