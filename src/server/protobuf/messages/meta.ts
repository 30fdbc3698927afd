import {
  filled,
  flag,
  int32,
  int64,
  json,
  list,
  map,
  message,
  optional,
  part,
  required,
  text,
  time,
} from './message.ts';

/** Messages of k8s.io/apimachinery, package meta/v1. */

const ownerReference = message({
  apiVersion: required(text(5)),
  kind: required(text(1)),
  name: required(text(3)),
  uid: required(text(4)),
  controller: optional(flag(6)),
  blockOwnerDeletion: optional(flag(7)),
});

const managedFieldsEntry = message({
  manager: text(1),
  operation: text(2),
  apiVersion: text(3),
  time: optional(time(4)),
  fieldsType: text(6),
  fieldsV1: json(7),
  subresource: text(8),
});

export const objectMeta = message({
  name: text(1),
  generateName: text(2),
  namespace: text(3),
  selfLink: text(4),
  uid: text(5),
  resourceVersion: text(6),
  generation: int64(7),
  creationTimestamp: filled(time(8)),
  deletionTimestamp: optional(time(9)),
  deletionGracePeriodSeconds: optional(int64(10)),
  labels: map(11, 'text'),
  annotations: map(12, 'text'),
  ownerReferences: list(13, ownerReference),
  finalizers: list(14, 'text'),
  managedFields: list(17, managedFieldsEntry),
});

/** A requirement on labels or on fields. */
export const selectorRequirement = message({
  key: required(text(1)),
  operator: required(text(2)),
  values: list(3, 'text'),
});

export const labelSelector = message({
  matchLabels: map(1, 'text'),
  matchExpressions: list(2, selectorRequirement),
});

const preconditions = message({ uid: optional(text(1)), resourceVersion: optional(text(2)) });

export const deleteOptions = message({
  gracePeriodSeconds: optional(int64(1)),
  preconditions: optional(part(2, preconditions)),
  orphanDependents: optional(flag(3)),
  propagationPolicy: optional(text(4)),
  dryRun: list(5, 'text'),
  ignoreStoreReadErrorWithClusterBreakingPotential: optional(flag(6)),
});

const listMeta = message({
  selfLink: text(1),
  resourceVersion: text(2),
  continue: text(3),
  remainingItemCount: optional(int64(4)),
  shardInfo: optional(part(5, message({ selector: required(text(1)) }))),
});

const statusDetails = message({
  name: text(1),
  group: text(2),
  kind: text(3),
  uid: text(6),
  causes: list(4, message({ reason: text(1), message: text(2), field: text(3) })),
  retryAfterSeconds: int32(5),
});

export const status = message({
  metadata: part(1, listMeta),
  status: text(2),
  message: text(3),
  reason: text(4),
  details: optional(part(5, statusDetails)),
  code: int32(6),
});
