import { flag, int32, list, map, message, microTime, optional, part, required, text, time } from './message.ts';
import { objectMeta } from './meta.ts';

/** Messages of k8s.io/api, packages core/v1 and events/v1, which share the messages of events. */

const namespaceCondition = message({
  type: required(text(1)),
  status: required(text(2)),
  lastTransitionTime: time(4),
  reason: text(5),
  message: text(6),
});

export const namespace = message({
  metadata: part(1, objectMeta),
  spec: part(2, message({ finalizers: list(1, 'text') })),
  status: part(3, message({ phase: text(1), conditions: list(2, namespaceCondition) })),
});

export const secret = message({
  metadata: part(1, objectMeta),
  immutable: optional(flag(5)),
  data: map(2, 'bytes'),
  stringData: map(4, 'text'),
  type: text(3),
});

export const configMap = message({
  metadata: part(1, objectMeta),
  immutable: optional(flag(4)),
  data: map(2, 'text'),
  binaryData: map(3, 'bytes'),
});

const objectReference = message({
  kind: text(1),
  namespace: text(2),
  name: text(3),
  uid: text(4),
  apiVersion: text(5),
  resourceVersion: text(6),
  fieldPath: text(7),
});

export const serviceAccount = message({
  metadata: part(1, objectMeta),
  secrets: list(2, objectReference),
  imagePullSecrets: list(3, message({ name: text(1) })),
  automountServiceAccountToken: optional(flag(4)),
});

const eventSource = message({ component: text(1), host: text(2) });

export const event = message({
  metadata: part(1, objectMeta),
  involvedObject: part(2, objectReference),
  reason: text(3),
  message: text(4),
  source: part(5, eventSource),
  firstTimestamp: time(6),
  lastTimestamp: time(7),
  count: int32(8),
  type: text(9),
  eventTime: microTime(10),
  series: optional(part(11, message({ count: int32(1), lastObservedTime: microTime(2) }))),
  action: text(12),
  related: optional(part(13, objectReference)),
  reportingComponent: required(text(14)),
  reportingInstance: required(text(15)),
});

export const eventsEvent = message({
  metadata: part(1, objectMeta),
  eventTime: microTime(2),
  series: optional(part(3, message({ count: required(int32(1)), lastObservedTime: microTime(2) }))),
  reportingController: text(4),
  reportingInstance: text(5),
  action: text(6),
  reason: text(7),
  regarding: part(8, objectReference),
  related: optional(part(9, objectReference)),
  note: text(10),
  type: text(11),
  deprecatedSource: part(12, eventSource),
  deprecatedFirstTimestamp: time(13),
  deprecatedLastTimestamp: time(14),
  deprecatedCount: int32(15),
});
