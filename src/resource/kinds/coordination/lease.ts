import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { serverTimeSchema } from '../common/time-schema.ts';

export const leaseKind = defineKind({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  description: 'What several instances of a program agree by on who leads.',
  spec: z
    .object({
      holderIdentity: z.string().nullish().describe('Who holds the lease; empty if it is free.'),
      leaseDurationSeconds: z.int32().min(1).nullish().describe('How long others wait after renewTime, in seconds.'),
      acquireTime: serverTimeSchema.describe('When the holder took the lease.'),
      renewTime: serverTimeSchema.describe('When the holder last renewed it.'),
      leaseTransitions: z.int32().min(0).nullish().describe('How often the lease went to another holder.'),
      strategy: z.string().nullish().describe('How a holder is chosen, where one is chosen for the candidates.'),
      preferredHolder: z.string().nullish().describe('To whom the holder should give the lease.'),
    })
    .prefault({})
    .describe('Who holds the lease and until when.'),
  printerColumns: [
    NAME_COLUMN,
    { name: 'Holder', type: 'string', value: (object) => object.spec.holderIdentity ?? undefined },
    AGE_COLUMN,
  ],
});
