import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { microTimeSchema } from '../common/time-schema.ts';

export const leaseKind = defineKind({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  description: 'What several instances of a program agree by on who leads.',
  spec: z
    .object({
      holderIdentity: z.string().nullish().describe('Identity of the holder of the lease; empty if the lease is free.'),
      leaseDurationSeconds: z
        .int32()
        .min(1)
        .nullish()
        .describe('Duration in seconds after renewTime that other candidates wait before they acquire the lease.'),
      acquireTime: microTimeSchema.describe('Time at which the holder acquired the lease.'),
      renewTime: microTimeSchema.describe('Time at which the holder last renewed the lease.'),
      leaseTransitions: z.int32().min(0).nullish().describe('Number of transitions of the lease between holders.'),
      strategy: z.string().nullish().describe('Strategy of coordinated leader election.'),
      preferredHolder: z
        .string()
        .nullish()
        .describe('Identity of the candidate that the holder should yield the lease to.'),
    })
    .prefault({})
    .describe('Holder and duration of the lease.'),
  printerColumns: [
    NAME_COLUMN,
    { name: 'Holder', type: 'string', value: (object) => object.spec.holderIdentity ?? undefined },
    AGE_COLUMN,
  ],
});
