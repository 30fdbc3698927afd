import { z } from 'zod';

const time = () => z.string().meta({ format: 'date-time' });

const change = z.object({
  repository: z.string().describe('Name of the Repository object.'),
  package: z.string().describe('Path of the package in the repository.'),
  revision: z.int().describe('Revision number that was delivered for the first time.'),
  createdAt: time().optional().describe('Creation of the draft, in RFC 3339.'),
  deliveredAt: time().describe('Commit to the branch of the target.'),
  syncedAt: time().optional().describe('First report of the engine that the delivered content is applied.'),
  healthyAt: time().optional().describe('First report of the engine that the applied content is healthy.'),
  failedAt: time().optional().describe('Time of the failure.'),
  failure: z
    .enum(['Unhealthy', 'RolledBack', 'Reverted', 'Downgraded'])
    .optional()
    .describe(
      'Reason why the change failed: Unhealthy soon after its delivery, RolledBack by the policy of the target, Reverted by a later revision, or Downgraded to a lower one.',
    ),
  restoredAt: time().optional().describe('First report after the failure that the package is healthy.'),
  replacedAt: time().optional().describe('First delivery of a higher revision.'),
  removedAt: time().optional().describe('Removal of the package from the target.'),
});

/** The last changes of a target, from which the DORA figures are computed. */
export const targetHistorySchema = z
  .object({
    commit: z.string().describe('Commit of the branch up to which deliveries are recorded.'),
    observedFrom: time().describe('Start of the observation: the health of earlier deliveries is not recorded.'),
    completeFrom: time().describe('Time after which the list has every change.'),
    changes: z.array(change).describe('Changes in the order of their deliveries. At most the last 500.'),
  })
  .describe('Last changes of the packages of the target, with the times of delivery, health, failure and restoration.');
