import { z } from 'zod';
import { forgeSchema, labelsSchema, reviewersSchema } from '../forge-schema.ts';

/** `spec.pullRequest` of a DeliveryTarget: what is delivered is merged from a pull request. */
export const deliveryPullRequestSchema = z
  .object({
    forge: forgeSchema,
    merge: z
      .enum(['automatic', 'manual'])
      .default('manual')
      .describe(
        'Whether Sluice merges as soon as the rules of the host permit it (automatic), or users do (manual, default).',
      ),
    method: z
      .enum(['merge', 'squash', 'rebase'])
      .default('merge')
      .describe('Method of an automatic merge. Default: merge.'),
    title: z
      .string()
      .min(1)
      .max(200)
      .regex(/^[^\x00-\x1f\x7f]+$/, 'must be one line')
      .optional()
      .describe('Title of new pull requests. Default: Deliver to <name of the target>.'),
    labels: labelsSchema,
    reviewers: reviewersSchema,
  })
  .describe('Delivers by a pull request instead of a push to the branch.');

/** `status.pullRequest` of a DeliveryTarget. */
export const deliveryPullRequestStatusSchema = z
  .object({
    number: z.int().describe('Number of the pull request.'),
    url: z.string().describe('Address of its page.'),
    state: z
      .enum(['Open', 'Queued', 'Closed', 'Merged'])
      .describe('Open, in the merge queue of the host, closed without a merge, or merged.'),
    commit: z.string().optional().describe('ID of its head.'),
  })
  .describe('Pull request that the last changes are delivered by.');
