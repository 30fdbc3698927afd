import { z } from 'zod';
import { findCondition } from '../../../object/condition.ts';
import { durationSchema } from '../../../object/duration.ts';
import { type FieldCause, invalidValue } from '../../../object/invalid-object.ts';
import { defineKind } from '../../../schema/define-kind.ts';
import type { ObjectOf } from '../../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../../common/columns.ts';
import { conditionsSchema, observedGenerationSchema } from '../../common/condition-schema.ts';
import { approvingSelectorSchema } from '../package-selector.ts';
import { amountSchema, verificationSchema, waveNameSchema, waveSchema } from './wave-schema.ts';

const MAX_WAVES = 30;
const MAX_APPROVALS = 500;
/** Of the last transitions of the plan as a whole; those of targets are in their WaveTargets. */
export const MAX_LOG_ENTRIES = 50;

/** Freezes in force that a plan names. */
export const MAX_FREEZES = 10;

const milliseconds = z.number().min(0);

const approvalRecord = z.object({
  wave: waveNameSchema.describe('Name of the wave.'),
  user: z.string().min(1).max(253).describe('User who approves. It must be the user who adds the entry.'),
  groups: z
    .array(z.string().min(1).max(253))
    .max(50)
    .optional()
    .describe('Groups of the user that count. The user must be a member of them when the entry is added.'),
  reason: z.string().max(1024).optional().describe('Reason of the user.'),
});

const waveStatus = z.object({
  name: waveNameSchema.describe('Name of the wave.'),
  startedMs: milliseconds.describe('When it started, in the time of the plan.'),
  verifiedMs: milliseconds.optional().describe('Since when all of its targets have a result, in the time of the plan.'),
  analysis: z.int().min(1).describe('Number of the present attempt of its analyses.'),
  analysedMs: milliseconds.optional().describe('When its analyses were successful, in the time of the plan.'),
  completedMs: milliseconds.optional().describe('When it was completed, in the time of the plan.'),
  isPromoted: z.literal(true).optional().describe('True if a user passed it.'),
  isRemoved: z
    .literal(true)
    .optional()
    .describe('True if spec.waves has it no longer, and a user has resumed the plan, so that it ends.'),
  targets: z.int().describe('Number of its targets.'),
  verified: z.int().describe('Number of its targets that are verified.'),
  failed: z.int().describe('Number of its targets that have failed or cannot be reached.'),
  message: z.string().optional().describe('What it waits for.'),
});

/** Finalizer by which a deleted plan in progress keeps its hold on what it selects. */
export const WAVE_PLAN_FINALIZER = 'sluice.dev/waveplans';

/** Reason of a deleted plan that holds revisions. */
export const DELETION_HELD = 'DeletionHeld';

export const wavePlanKind = defineKind({
  group: 'sluice.dev',
  version: 'v1alpha1',
  kind: 'WavePlan',
  plural: 'waveplans',
  shortNames: ['wp'],
  categories: ['sluice', 'all'],
  description: 'Approves the Proposed revisions that it selects in waves.',
  strategy: { validate: ({ spec }) => waveCauses(spec.waves) },
  spec: z
    .object({
      selector: approvingSelectorSchema
        .extend({
          variantSet: z
            .string()
            .min(1)
            .max(253)
            .optional()
            .describe('Name of a PackageVariantSet: the packages of its variants.'),
          blueprint: z
            .object({
              repository: z.string().min(1).max(253).describe('Name of the Repository object of the upstream package.'),
              package: z.string().min(1).max(1024).describe('Path of the upstream package.'),
              revision: z.int().min(1).optional().describe('Number of the upstream revision. Defaults to any.'),
            })
            .optional()
            .describe('Upstream revision that the revisions were cloned or upgraded from.'),
        })
        .default({})
        .describe('Selector for the revisions; all given fields must match.'),
      order: z
        .object({
          salt: z
            .string()
            .max(253)
            .optional()
            .describe(
              'Salt of the digest that sorts targets. Defaults to a random one, which the status records at the start.',
            ),
          label: z
            .string()
            .min(1)
            .max(317)
            .optional()
            .describe(
              'Label of the revisions whose value sorts them first, as users who may approve, or controllers, have set it.',
            ),
        })
        .default({})
        .describe('Order of the targets.'),
      waves: z.array(waveSchema).min(1).max(MAX_WAVES).describe('Waves, in order.'),
      verification: verificationSchema.default({}),
      maxFailures: amountSchema.default(0).describe('Number, or percentage, of targets that may fail.'),
      maxUnreachable: amountSchema
        .default(0)
        .describe('Number, or percentage, of targets whose state may stay unknown.'),
      progressDeadline: durationSchema.default('45m').describe('Time in which an approved target must be verified.'),
      onFailure: z
        .enum(['Pause', 'Rollback'])
        .default('Pause')
        .describe('What happens if more targets fail, or cannot be reached, than permitted, or if an analysis fails.'),
      paused: z.boolean().default(false).describe('If true, no approval and no wave begins.'),
      pausedBy: z
        .string()
        .min(1)
        .max(253)
        .optional()
        .describe('User who set paused to true. It must be the user who sets the field.'),
      abort: z.boolean().default(false).describe('If true, the plan ends. It cannot be continued.'),
      rollback: z
        .boolean()
        .default(false)
        .describe('If true, the plan ends, and the revisions before are published again as new revisions.'),
      resume: z
        .int()
        .min(0)
        .default(0)
        .describe(
          'Number of the last pause that is ended: that of status.pauses. What had failed until then is accepted.',
        ),
      promotePast: waveNameSchema
        .optional()
        .describe(
          'Waves up to and including this one are passed without verification, soak and analysis. Once it is over, no other is.',
        ),
      approvals: z.array(approvalRecord).max(MAX_APPROVALS).default([]).describe('Approvals of waves.'),
    })
    .describe('Desired waves.'),
  status: z
    .object({
      phase: z
        .enum(['Pending', 'Running', 'Paused', 'Completed', 'Aborted', 'RollingBack', 'RolledBack'])
        .optional()
        .describe('Phase of the plan.'),
      wave: waveNameSchema.optional().describe('Name of the wave in progress.'),
      message: z.string().optional().describe('What the plan waits for, or why it ended.'),
      pause: z
        .object({
          cause: z
            .enum([
              'Requested',
              'MaxFailures',
              'MaxUnreachable',
              'AnalysisFailed',
              'AnalysisInconclusive',
              'WaveRemoved',
            ])
            .describe('Cause of the pause.'),
          message: z.string().describe('Details of the cause.'),
        })
        .optional()
        .describe('Present pause.'),
      freezes: z
        .array(
          z.object({
            namespace: z.string().describe('Namespace of the Freeze.'),
            name: z.string().describe('Name of the Freeze.'),
            reason: z.string().describe('Its reason.'),
            until: z
              .string()
              .meta({ format: 'date-time' })
              .optional()
              .describe('Time at which it ends, in RFC 3339. Without it, it ends when the object is deleted.'),
          }),
        )
        .max(MAX_FREEZES)
        .optional()
        .describe('Freezes in force, the first ones. Meanwhile nothing is approved, and the time of the plan stops.'),
      salt: z
        .string()
        .optional()
        .describe('Salt of the order of the targets, once the first wave has started; absent if the spec has one.'),
      pauses: z.int().default(0).describe('Number of pauses so far, apart from requested ones.'),
      joins: z.int().default(0).describe('Number of times that targets joined after the start.'),
      elapsedMs: milliseconds
        .default(0)
        .describe(
          'Time of the plan: milliseconds for which Sluice has observed it. Soaks and deadlines are measured by it.',
        ),
      waves: z
        .array(waveStatus)
        .max(MAX_WAVES * 10)
        .default([])
        .describe('Waves that have started.'),
      targets: z
        .object({
          total: z.int().describe('Number of targets.'),
          approved: z.int().describe('Number of targets that are published.'),
          verified: z.int().describe('Number of targets that are verified.'),
          failed: z.int().describe('Number of targets that have failed.'),
          unreachable: z.int().describe('Number of targets that cannot be reached.'),
          skipped: z.int().describe('Number of targets that left the plan.'),
        })
        .optional()
        .describe('Numbers of targets.'),
      log: z
        .array(
          z.object({
            time: z.string().meta({ format: 'date-time' }).describe('Time of the transition, in RFC 3339.'),
            elapsedMs: milliseconds.describe('The same in the time of the plan.'),
            transition: z.string().describe('Type of the transition.'),
            wave: z.string().optional().describe('Wave that it is about.'),
            message: z.string().optional().describe('Details.'),
          }),
        )
        .max(MAX_LOG_ENTRIES)
        .optional()
        .describe(
          `Last ${MAX_LOG_ENTRIES} transitions of the plan, the oldest first. Those of targets are in the WaveTargets.`,
        ),
      conditions: conditionsSchema.optional(),
      observedGeneration: observedGenerationSchema,
    })
    .describe('Recorded state of the plan.'),
  printerColumns: [
    NAME_COLUMN,
    {
      name: 'Phase',
      type: 'string',
      // It is the phase, except of a deleted plan, which approves nothing any more: a column of a cluster cannot read whether it is deleted.
      jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
      value: ({ metadata, status }) => {
        const reason = findCondition(status?.conditions, 'Ready')?.reason;
        return metadata.deletionTimestamp === undefined || reason === DELETION_HELD ? reason : 'Deleting';
      },
    },
    {
      name: 'Frozen',
      type: 'string',
      jsonPath: '.status.freezes[0].name',
      value: ({ status }) => status?.freezes?.[0]?.name,
    },
    {
      name: 'Wave',
      type: 'string',
      jsonPath: '.status.wave',
      value: ({ status }) => status?.wave,
    },
    {
      name: 'Targets',
      type: 'integer',
      jsonPath: '.status.targets.total',
      value: ({ status }) => status?.targets?.total,
    },
    {
      name: 'Approved',
      type: 'integer',
      jsonPath: '.status.targets.approved',
      value: ({ status }) => status?.targets?.approved,
    },
    {
      name: 'Verified',
      type: 'integer',
      jsonPath: '.status.targets.verified',
      value: ({ status }) => status?.targets?.verified,
    },
    {
      name: 'Failed',
      type: 'integer',
      jsonPath: '.status.targets.failed',
      value: ({ status }) => status?.targets?.failed,
    },
    {
      name: 'Message',
      type: 'string',
      priority: 1,
      jsonPath: '.status.message',
      value: ({ status }) => status?.message,
    },
    AGE_COLUMN,
  ],
});

export type WavePlan = ObjectOf<typeof wavePlanKind>;

/** What no schema of one wave can say. */
function waveCauses(waves: readonly { readonly name: string; readonly percent?: number | undefined }[]): FieldCause[] {
  const causes: FieldCause[] = [];
  let before = 0;
  for (const [index, { name, percent }] of waves.entries()) {
    const path = ['spec', 'waves', index];
    if (waves.findIndex((wave) => wave.name === name) < index)
      causes.push(invalidValue([...path, 'name'], name, 'must be unique in the plan'));
    if (percent === undefined) continue;
    if (percent < before)
      causes.push(
        invalidValue(
          [...path, 'percent'],
          percent,
          `is cumulative and must not be less than ${before} of a wave before`,
        ),
      );
    before = percent;
  }
  return causes;
}
