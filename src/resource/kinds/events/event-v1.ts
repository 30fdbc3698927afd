import { type FieldCause, invalidValue } from '../../object/invalid-object.ts';
import type { KubernetesObject, ObjectMeta } from '../../object/object.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import type { Translation } from '../../storage/translated-storage.ts';
import { type Event, eventFields, eventKind, inNamespaceOf } from '../core/event.ts';

interface EventPlace {
  readonly metadata: ObjectMeta;
  readonly regarding: { readonly namespace?: string | undefined };
}

const { involvedObject, message, reportingComponent, source, firstTimestamp, lastTimestamp, count, ...sameFields } =
  eventFields;

/** Events as newer recorders write them: the very same objects as the core events, under other names. */
export const eventV1Kind = defineKind({
  group: 'events.k8s.io',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  shortNames: ['ev'],
  description: 'Report of an event about an object.',
  fields: {
    ...sameFields,
    regarding: involvedObject.default({}),
    note: message,
    reportingController: reportingComponent,
    deprecatedSource: source,
    deprecatedFirstTimestamp: firstTimestamp,
    deprecatedLastTimestamp: lastTimestamp,
    deprecatedCount: count,
  },
  strategy: { validate: namespaceCauses },
  selectableFields: [
    { path: 'regarding.apiVersion' },
    { path: 'regarding.kind' },
    { path: 'regarding.namespace' },
    { path: 'regarding.name' },
    { path: 'regarding.uid' },
    { path: 'regarding.resourceVersion' },
    { path: 'regarding.fieldPath' },
    { path: 'reportingController' },
    { path: 'reason' },
    { path: 'type' },
  ],
  printerColumns: [
    {
      name: 'Last Seen',
      type: 'date',
      description: 'When it last happened.',
      value: (object) =>
        object.series?.lastObservedTime ??
        object.deprecatedLastTimestamp ??
        object.eventTime ??
        object.deprecatedFirstTimestamp ??
        object.metadata.creationTimestamp,
    },
    { name: 'Type', type: 'string', value: (object) => object.type },
    { name: 'Reason', type: 'string', value: (object) => object.reason },
    {
      name: 'Object',
      type: 'string',
      value: ({ regarding }) => `${(regarding.kind ?? '').toLowerCase()}/${regarding.name ?? ''}`,
    },
    { name: 'Subobject', type: 'string', priority: 1, value: (object) => object.regarding.fieldPath },
    {
      name: 'Source',
      type: 'string',
      priority: 1,
      value: ({ deprecatedSource, reportingController }) =>
        [deprecatedSource?.component ?? reportingController, deprecatedSource?.host].filter(Boolean).join(', '),
    },
    { name: 'Message', type: 'string', value: (object) => object.note.trim() },
    {
      name: 'First Seen',
      type: 'date',
      priority: 1,
      value: (object) => object.deprecatedFirstTimestamp ?? object.eventTime ?? object.metadata.creationTimestamp,
    },
    {
      name: 'Count',
      type: 'integer',
      priority: 1,
      value: (object) => object.series?.count ?? object.deprecatedCount ?? 1,
    },
    { name: 'Name', type: 'string', priority: 1, value: (object) => object.metadata.name },
  ],
});

export type EventV1 = ObjectOf<typeof eventV1Kind>;

/** Fields with another name in the core group; all other fields are equal. */
const NAMES: readonly (readonly [v1: string, core: string])[] = [
  ['regarding', 'involvedObject'],
  ['note', 'message'],
  ['reportingController', 'reportingComponent'],
  ['deprecatedSource', 'source'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
];
const TO_CORE: ReadonlyMap<string, string> = new Map(NAMES);
const FROM_CORE: ReadonlyMap<string, string> = new Map(NAMES.map(([v1, core]) => [core, v1]));

/** Core events are stored. */
export const eventV1Translation: Translation<EventV1, Event> = {
  // The two kinds have the same fields, but for the names that the tables map.
  fromStored: (event) => renamed(event, eventV1Kind.apiVersion, FROM_CORE) as unknown as EventV1,
  toStored: (event) => renamed(event, eventKind.apiVersion, TO_CORE) as unknown as Event,
  storedPath: (path) => path.replace(/^\w+/, (field) => TO_CORE.get(field) ?? field),
};

function renamed(event: KubernetesObject, apiVersion: string, names: ReadonlyMap<string, string>): object {
  const fields = Object.entries({ ...event, apiVersion });
  return Object.fromEntries(fields.map(([field, value]) => [names.get(field) ?? field, value]));
}

/** An event must be in the namespace of its object, so that users who may read the object may read the event. */
function namespaceCauses({ metadata, regarding }: EventPlace): FieldCause[] {
  const { namespace = '' } = regarding;
  return inNamespaceOf(metadata, namespace)
    ? []
    : [invalidValue(['regarding', 'namespace'], namespace, 'does not match event.namespace')];
}
