import { z } from 'zod';
import { defineKind } from '../../../schema/define-kind.ts';
import type { ObjectOf } from '../../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../../common/columns.ts';
import { conditionsSchema } from '../../common/condition-schema.ts';

/** Transitions of one target that are kept: more than its way through all phases takes. */
export const MAX_TARGET_LOG_ENTRIES = 20;

const phase = z.enum([
  ...(['Pending', 'Ahead', 'Assigned', 'Approving', 'Approved', 'Verified', 'Failed', 'Unreachable'] as const),
  ...(['Skipped', 'RollingBack', 'RolledBack', 'NotRolledBack'] as const),
]);

const record = z
  .object({
    revision: z.string().describe('Name of the PackageRevision that is to be approved.'),
    commit: z.string().describe('ID of the commit that is to be approved.'),
    phase: phase.describe('Phase of the target.'),
    wave: z.string().optional().describe('Name of its wave.'),
    order: z
      .object({
        joined: z.int().describe('0 for a target of the start, else the number of the time at which it joined.'),
        key: z.string().describe('Digest, or label and digest, by which targets are sorted.'),
      })
      .describe('Place of the target in the plan.'),
    attempt: z.int().describe('Number of intended approvals.'),
    published: z.int().optional().describe('Number of the published revision.'),
    previous: z
      .int()
      .optional()
      .describe(
        'Number of the revision that was delivered when the approval was intended, which a rollback returns to.',
      ),
    sinceMs: z.number().describe('When the phase or the reason changed, in the time of the plan.'),
    reason: z
      .string()
      .optional()
      .describe('Why it waits, why its last verification did not succeed, or why it failed.'),
    isAccepted: z.literal(true).optional().describe('True for a failure that a user has accepted.'),
    log: z
      .array(
        z.object({
          time: z.string().meta({ format: 'date-time' }).describe('Time of the transition, in RFC 3339.'),
          elapsedMs: z.number().describe('The same in the time of the plan.'),
          transition: z.string().describe('Type of the transition.'),
          message: z.string().optional().describe('Details.'),
        }),
      )
      .max(MAX_TARGET_LOG_ENTRIES)
      .describe(`Last ${MAX_TARGET_LOG_ENTRIES} transitions, the oldest first.`),
  })
  .describe('Record of the target, by which the plan decides.');

/**
 * Controllers write the record, and no user may: it is no status, so that the status has only what external programs set, who need no right
 * on the record.
 */
export const waveTargetKind = defineKind({
  group: 'sluice.dev',
  version: 'v1alpha1',
  kind: 'WaveTarget',
  plural: 'wavetargets',
  shortNames: ['wt'],
  categories: ['sluice'],
  description: 'A target of a WavePlan, with what the plan did with it. Sluice writes and deletes these objects.',
  spec: z
    .object({
      plan: z.string().min(1).describe('Name of the WavePlan.'),
      repository: z.string().min(1).describe('Name of the Repository object.'),
      package: z.string().min(1).describe('Path of the package in the repository.'),
    })
    .describe('Plan and package.'),
  fields: { record: record.optional() },
  status: z
    .object({ conditions: conditionsSchema.optional() })
    .describe('What external programs report; spec.verification.condition of the plan names the type that counts.'),
  immutableFields: ['spec.plan', 'spec.repository', 'spec.package'],
  printerColumns: [
    NAME_COLUMN,
    { name: 'Plan', type: 'string', jsonPath: '.spec.plan', value: ({ spec }) => spec.plan },
    { name: 'Revision', type: 'string', jsonPath: '.record.revision', value: (object) => object.record?.revision },
    { name: 'Wave', type: 'string', jsonPath: '.record.wave', value: (object) => object.record?.wave },
    { name: 'Phase', type: 'string', jsonPath: '.record.phase', value: (object) => object.record?.phase },
    {
      name: 'Reason',
      type: 'string',
      priority: 1,
      jsonPath: '.record.reason',
      value: (object) => object.record?.reason,
    },
    AGE_COLUMN,
  ],
  selectableFields: [{ path: 'spec.plan' }],
});

export type WaveTarget = ObjectOf<typeof waveTargetKind>;
