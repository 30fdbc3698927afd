import { int32, message, microTime, optional, part, text } from './message.ts';
import { objectMeta } from './meta.ts';

/** Messages of k8s.io/api, package coordination/v1. */

const leaseSpec = message({
  holderIdentity: optional(text(1)),
  leaseDurationSeconds: optional(int32(2)),
  acquireTime: optional(microTime(3)),
  renewTime: optional(microTime(4)),
  leaseTransitions: optional(int32(5)),
  strategy: optional(text(6)),
  preferredHolder: optional(text(7)),
});

export const lease = message({ metadata: part(1, objectMeta), spec: part(2, leaseSpec) });
