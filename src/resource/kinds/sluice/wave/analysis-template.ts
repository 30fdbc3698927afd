import { z } from 'zod';
import { defineKind } from '../../../schema/define-kind.ts';
import type { ObjectOf } from '../../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../../common/columns.ts';
import { metricCauses } from './check-metrics.ts';
import { metricSchema } from './metric-schema.ts';

const MAX_METRICS = 20;
const MAX_ARGS = 50;

/** They are inserted into queries and bodies, so they have no quotes, spaces, braces or operators. */
const ARG_VALUE = /^[A-Za-z0-9._:/@-]*$/;

const argName = z
  .string()
  .min(1)
  .max(63)
  .regex(/^[A-Za-z0-9_-]+$/, 'must consist of letters, digits, "_" and "-"');
export const argValueSchema = z
  .string()
  .max(253)
  .regex(ARG_VALUE, 'must consist of letters, digits and ._:/@-, since it is inserted into queries');

/** An argument with its value. */
export const argSchema = z.object({
  name: argName.describe('Name of the argument.'),
  value: argValueSchema.describe('Value of the argument.'),
});

export const ARGS_BY_NAME = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] };

export const analysisTemplateKind = defineKind({
  group: 'sluice.dev',
  version: 'v1alpha1',
  kind: 'AnalysisTemplate',
  plural: 'analysistemplates',
  shortNames: ['at'],
  categories: ['sluice', 'all'],
  description: 'Metrics by which the waves of a rollout are judged.',
  strategy: { validate: ({ spec }) => metricCauses(spec.metrics, spec.args) },
  spec: z
    .object({
      args: z
        .array(
          z.object({
            name: argName.describe('Name of the argument.'),
            value: argValueSchema.optional().describe('Default. Without it, each run must give a value.'),
          }),
        )
        .max(MAX_ARGS)
        .optional()
        .meta(ARGS_BY_NAME)
        .describe('Arguments of queries: {{args.<name>}}.'),
      metrics: z
        .array(metricSchema)
        .min(1)
        .max(MAX_METRICS)
        .meta(ARGS_BY_NAME)
        .describe('Metrics. All must be successful.'),
    })
    .describe('Metrics and their arguments.'),
  printerColumns: [
    NAME_COLUMN,
    {
      name: 'Metrics',
      type: 'string',
      // Versions of Kubernetes differ in how many of several values they show; one of the first is enough to recognise a template.
      jsonPath: '.spec.metrics[*].name',
      value: ({ spec }) => spec.metrics.map(({ name }) => name).join(','),
    },
    AGE_COLUMN,
  ],
});

export type AnalysisTemplate = ObjectOf<typeof analysisTemplateKind>;
