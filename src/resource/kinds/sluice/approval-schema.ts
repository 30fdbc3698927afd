import { z } from 'zod';
import { recurrenceProblem } from '../../../foundation/time/recurrence.ts';
import { durationSchema, parseDuration } from '../../object/duration.ts';
import { clusterRules } from '../../schema/cluster-rule.ts';
import { REACHABLE_QUORUM, refuseUnreachable } from './quorum-rule.ts';

const MAX_NAMES = 100;
const MAX_RECURRENCES = 20;
const MAX_QUORUM = 20;
const MAX_REASON_CHARACTERS = 1024;
const MAX_IN_FLIGHT = 100_000;

const actor = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[^\s\x00-\x1f\x7f]+$/, 'must not contain white space or control characters');

/** A text for people: one line. */
export const reasonTextSchema = z
  .string()
  .min(1)
  .max(MAX_REASON_CHARACTERS)
  .regex(/^[^\x00-\x1f\x7f-\x9f]+$/, 'must be one line of text')
  .refine((text) => text.trim() !== '', 'must not be empty');

const recurrence = (what: string) =>
  z
    .object({
      cron: z
        .string()
        .min(9)
        .max(100)
        .describe(
          'Start, in five fields: minute, hour, day of the month, month, day of the week, such as "0 9 * * 1-5".',
        ),
      duration: durationSchema.describe('Time from each start to its end, such as 8h. At least 1m, at most 8784h.'),
      timeZone: z
        .string()
        .min(1)
        .max(64)
        .default('UTC')
        .describe('IANA name of the time zone of cron, such as Europe/Berlin. Default: UTC.'),
      reason: reasonTextSchema.optional().describe('Text for the users who wait.'),
    })
    .describe(what);

/** Periods; how they are spread over time is checked only if they are few. */
const recurrences = (what: string) =>
  z
    .array(recurrence(what))
    .max(MAX_RECURRENCES, { abort: true })
    .superRefine((list, context) => {
      for (const [at, { cron, duration, timeZone }] of list.entries()) {
        const problem = recurrenceProblem({ cron, durationMs: parseDuration(duration) ?? 0, timeZone });
        if (problem !== undefined) context.addIssue({ code: 'custom', path: [at], message: problem });
      }
    });

export const approvalFields = z.object({
  forbidSelfApproval: z
    .boolean()
    .default(false)
    .describe('If true, contributors to a revision and its proposer may not approve it.'),
  breakGlass: z
    .array(z.string().min(1))
    .default([])
    .describe(
      'Users, or group:<name>, who may publish a revision with closed gates, and while a window, a freeze, a soak time or a maximum in flight blocks it. They must give a reason.',
    ),
  automatic: z
    .boolean()
    .default(false)
    .describe(
      'If true, Sluice approves the proposed revisions that the policy selects as soon as all rules of all policies are met. Labels of the Kptfile do not select a revision for it.',
    ),
  quorum: z
    .object({
      required: z
        .int()
        .min(1)
        .max(MAX_QUORUM)
        .describe('Number of different users who have to approve the same content.'),
      from: z
        .array(actor)
        .max(MAX_NAMES)
        .default([])
        .describe(
          'Users, or group:<name>, whose approvals count. Defaults to all users who may approve. Groups count as they are when the user approves.',
        ),
      excludeProposer: z
        .boolean()
        .default(true)
        .describe('Whether the approval of the proposer does not count. Default: true.'),
      excludeContributors: z
        .boolean()
        .default(true)
        .describe('Whether approvals of users who changed the content do not count. Default: true.'),
    })
    .superRefine(({ required, from }, context) => refuseUnreachable(required, from, context))
    .meta(clusterRules(REACHABLE_QUORUM))
    .optional()
    .describe('Users who have to approve. The approval that completes the quorums of all policies publishes.'),
  windows: recurrences('A period in which revisions may be approved.')
    .default([])
    .describe('Periods of which one must be open for an approval. Defaults to any time.'),
  freezes: recurrences('A period in which no revision may be approved.')
    .default([])
    .describe('Periods without approvals. They take precedence over windows.'),
  maxInFlight: z
    .int()
    .min(1)
    .max(MAX_IN_FLIGHT)
    .optional()
    .describe(
      'Maximum number of packages that the policy selects whose last published revision has not yet been delivered and, where its target has an engine, reported as healthy.',
    ),
  soak: z
    .object({
      proposed: durationSchema
        .optional()
        .describe('Minimum time since the revision was proposed, or its content was changed after that.'),
      sincePublished: durationSchema
        .optional()
        .describe('Minimum time since the previous revision of the package was published.'),
    })
    .optional()
    .describe('Minimum times before an approval.'),
});

/** `spec.approval` of a PackagePolicy. */
export const approvalSchema = approvalFields
  .prefault({})
  .describe('Rules for approvals. Rules of several policies add up: all must be met.');
