import { z } from 'zod';
import { defineKind } from '../../../schema/define-kind.ts';
import type { ObjectOf } from '../../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../../common/columns.ts';
import { conditionsSchema, observedGenerationSchema } from '../../common/condition-schema.ts';
import { serverTimeSchema } from '../../common/time-schema.ts';
import { ARGS_BY_NAME, argSchema } from './analysis-template.ts';

const MAX_TARGETS = 10_000;
const MAX_ARGS = 50;
/** Of each metric; earlier ones are counted only. */
export const MAX_MEASUREMENTS = 10;

/** Inserted into queries. */
const targetName = z
  .string()
  .max(253)
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$/,
    'must consist of letters, digits and ._/-, since it is inserted into queries',
  );
const targets = z.array(targetName).max(MAX_TARGETS).default([]);

const phase = z.enum(['Pending', 'Running', 'Successful', 'Failed', 'Error', 'Inconclusive']);
export type AnalysisPhase = z.infer<typeof phase>;

const measurement = z.object({
  phase: z
    .enum(['Successful', 'Failed', 'Error', 'Inconclusive'])
    .describe('Outcome: Successful, Failed, Error or Inconclusive.'),
  startedAt: z.string().meta({ format: 'date-time' }).describe('Time at which the measurement began.'),
  finishedAt: z.string().meta({ format: 'date-time' }).describe('Time at which the measurement ended.'),
  value: z.string().optional().describe('Measured value, shortened.'),
  message: z.string().optional().describe('Reason for an outcome other than Successful.'),
});

const counter = (what: string) => z.int().default(0).describe(`Number of ${what}.`);

const metricResult = z.object({
  name: z.string().describe('Name of the metric.'),
  phase: phase.describe('State of the metric.'),
  message: z.string().optional().describe('Reason for the state.'),
  successful: counter('successful measurements'),
  failed: counter('failed measurements'),
  inconclusive: counter('inconclusive measurements'),
  error: counter('measurements that could not be taken'),
  count: counter('measurements without errors'),
  consecutiveError: counter('errors since the last measurement without one'),
  measurements: z
    .array(measurement)
    .max(MAX_MEASUREMENTS)
    .default([])
    .describe(`Last ${MAX_MEASUREMENTS} measurements, the oldest first.`),
});

export const analysisRunKind = defineKind({
  group: 'sluice.dev',
  version: 'v1alpha1',
  kind: 'AnalysisRun',
  plural: 'analysisruns',
  shortNames: ['ar'],
  categories: ['sluice', 'all'],
  description: 'A run of an AnalysisTemplate for a wave of a rollout.',
  // Lists of targets.
  maxValues: 30_000,
  immutableFields: ['spec.templateRef', 'spec.args', 'spec.scope'],
  spec: z
    .object({
      templateRef: z
        .object({ name: z.string().min(1).max(253).describe('Name of an AnalysisTemplate in the same namespace.') })
        .describe('Template with the metrics.'),
      args: z.array(argSchema).max(MAX_ARGS).optional().meta(ARGS_BY_NAME).describe('Arguments of the template.'),
      scope: z
        .object({
          plan: z.string().max(253).optional().describe('Name of the plan that the run belongs to.'),
          wave: z.string().max(253).optional().describe('Name of the wave that the run belongs to.'),
          targets: z
            .object({
              canary: targets.describe('Names of the targets that the rollout has changed.'),
              untouched: targets.describe('Names of the targets that the rollout has not changed yet.'),
            })
            .optional()
            .describe('Targets that are measured: {{targets}} in queries.'),
        })
        .optional()
        .describe('Part of the rollout that is judged.'),
      terminate: z
        .boolean()
        .optional()
        .describe('If true, the run ends: metrics that have not failed until then are successful.'),
    })
    .describe('Template and its arguments.'),
  status: z
    .object({
      phase: phase.optional().describe('Pending, Running, Successful, Failed, Error or Inconclusive.'),
      message: z.string().optional().describe('Reason for the phase.'),
      startedAt: serverTimeSchema.describe('Time at which the run began.'),
      completedAt: serverTimeSchema.describe('Time at which the run ended.'),
      template: z
        .object({
          uid: z.string().describe('UID of the template.'),
          generation: z.int().describe('Generation of the template.'),
        })
        .optional()
        .describe('Template that the results are for. If it changes, the run begins again.'),
      metricResults: z.array(metricResult).optional().meta(ARGS_BY_NAME).describe('Results of the metrics.'),
      conditions: conditionsSchema.optional(),
      observedGeneration: observedGenerationSchema,
    })
    .describe('Observed state of the run.'),
  printerColumns: [
    NAME_COLUMN,
    {
      name: 'Template',
      type: 'string',
      jsonPath: '.spec.templateRef.name',
      value: ({ spec }) => spec.templateRef.name,
    },
    { name: 'Plan', type: 'string', jsonPath: '.spec.scope.plan', value: ({ spec }) => spec.scope?.plan },
    { name: 'Wave', type: 'string', jsonPath: '.spec.scope.wave', value: ({ spec }) => spec.scope?.wave },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase', value: ({ status }) => status?.phase },
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

export type AnalysisRun = ObjectOf<typeof analysisRunKind>;
export type MetricResult = NonNullable<NonNullable<AnalysisRun['status']>['metricResults']>[number];
export type MeasurementResult = MetricResult['measurements'][number];
