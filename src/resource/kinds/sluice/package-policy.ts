import { z } from 'zod';
import { durationSchema } from '../../object/duration.ts';
import { lookalikeProblem } from '../../object/lookalike.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { conditionsSchema, observedGenerationSchema } from '../common/condition-schema.ts';
import { approvalSchema } from './approval-schema.ts';
import { packageSelectorSchema } from './package-selector.ts';
import { reviewSchema } from './review-schema.ts';

/** Bounds what patterns are matched against. */
const MAX_NAME_CHARACTERS = 1024;
const MAX_SETS = 100;

const conditionPattern = z
  .string()
  .max(MAX_NAME_CHARACTERS)
  .regex(/^[^*\s]*\*?$/, 'must be a condition type, or the start of one followed by "*"')
  .min(1)
  .superRefine(refuseLookalike);
const conditionType = z.string().min(1).max(MAX_NAME_CHARACTERS).superRefine(refuseLookalike);

function refuseLookalike(type: string, context: z.RefinementCtx): void {
  const problem = type === '' ? undefined : lookalikeProblem(type);
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
}

export const packagePolicySpec = z
  .object({
    selector: packageSelectorSchema
      .extend({
        variantSets: z
          .array(z.string().min(1).max(253))
          .max(MAX_SETS)
          .optional()
          .describe('Names of PackageVariantSet objects: packages of their variants.'),
      })
      .default({})
      .describe('Selector for the packages that the policy applies to. Defaults to all packages.'),
    requiredGates: z
      .array(
        z.object({
          conditionType: conditionType.describe('Condition type that must be True.'),
          approveOnly: z
            .boolean()
            .optional()
            .describe('If true, the gate is required for approval, but not for proposal.'),
          boundTo: z
            .enum(['content', 'object'])
            .optional()
            .describe(
              'For a type <group>/<version>.<Kind>.<name>: whether a verdict applies to the whole content (default) or only to that object.',
            ),
        }),
      )
      .default([])
      .describe('Required gates in addition to those in the Kptfile.'),
    givers: z
      .array(
        z.object({
          conditionType: conditionPattern.describe('Condition type, or a prefix followed by "*".'),
          actors: z.array(z.string().min(1)).describe('Names of users and controllers, or group:<name>.'),
        }),
      )
      .default([])
      .describe('Permitted issuers of each condition type. All users may set a type that is not listed.'),
    validFor: z
      .array(
        z.object({
          conditionType: conditionPattern.describe('Condition type, or a prefix followed by "*".'),
          duration: durationSchema.describe('Duration since the condition was last set or confirmed, such as 24h.'),
        }),
      )
      .default([])
      .describe('Validity of conditions. When it expires, the gate closes until the condition is confirmed.'),
    pushMayGive: z.boolean().default(true).describe('Whether conditions that arrive by a plain Git push count.'),
    pushDenied: z.array(conditionPattern).default([]).describe('Condition types that a Git push may never set.'),
    validatorConditions: z
      .array(
        z.object({
          function: z.string().min(1).describe('Name of the pipeline entry, or its image without registry and tag.'),
          conditionType: conditionType.describe('Condition type that the results of the validator are reported as.'),
          image: z
            .string()
            .max(MAX_NAME_CHARACTERS)
            .regex(/[:@][^/:@]+$/, 'must have a tag or a digest')
            .optional()
            .describe(
              'Pins the function: if the pipeline contains exactly this image with this configuration, its results count as issued by controller:render, even where users may change the package. Without a pin they count as issued by the contributors of the package.',
            ),
          configMap: z
            .record(z.string(), z.string())
            .optional()
            .describe('Required configMap of the pipeline entry. Needs image.'),
          config: z
            .record(z.string(), z.unknown())
            .optional()
            .describe('Required configuration object of the pipeline entry (configPath, configRef). Needs image.'),
        }),
      )
      .default([])
      .describe('Validators whose results are reported as conditions of their own, which gates can require.'),
    kptfileApprovals: z
      .boolean()
      .default(false)
      .describe(
        'Whether annotations in the Kptfile can request automatic proposal and approval, like the annotations of the object.',
      ),
    autoPropose: z.boolean().default(false).describe('If true, proposes drafts whose gates are all open.'),
    approval: approvalSchema,
    commitBudgetPerHour: z
      .int()
      .min(0)
      .default(50)
      .describe('Maximum number of commits that controllers may make on one revision per hour.'),
    dependencies: z
      .object({
        maxDraftsPerMinute: z
          .int()
          .min(0)
          .optional()
          .describe(
            'Number of drafts that Sluice opens in a minute, of all packages that the policy selects together, since packages that they require have changed. 0 opens none. The limits that Sluice has itself, 60 in a namespace and 5 of a package, hold too.',
          ),
        maxOpenDrafts: z
          .int()
          .min(0)
          .optional()
          .describe(
            'Number of these drafts and proposals that are open at a time, of all packages that the policy selects together.',
          ),
      })
      .optional()
      .describe('Limits on the drafts that are opened since required packages have changed.'),
    gateDeadlines: z
      .array(
        z.object({
          conditionType: conditionType.describe('Condition type of the gate.'),
          after: durationSchema.describe('Duration since the gate closed, such as 30m or 24h.'),
        }),
      )
      .default([])
      .describe('Durations after which a closed gate is reported as overdue.'),
    review: reviewSchema.optional(),
  })
  .describe('Rules of the policy.');

export const packagePolicyKind = defineKind({
  group: 'sluice.dev',
  version: 'v1alpha1',
  kind: 'PackagePolicy',
  plural: 'packagepolicies',
  shortNames: ['pp'],
  categories: ['sluice', 'all'],
  description: 'Rules for the packages that it selects: gates, who may give verdicts, who may approve.',
  spec: packagePolicySpec,
  status: z
    .object({
      conditions: conditionsSchema.optional(),
      observedGeneration: observedGenerationSchema,
      gates: z.string().optional().describe('Condition types of its required gates, for tables.'),
    })
    .describe('Observed state of the policy.'),
  printerColumns: [
    NAME_COLUMN,
    {
      name: 'Gates',
      type: 'string',
      // Tables of a cluster show only the first of several values.
      jsonPath: '.status.gates',
      value: ({ spec }) => gatesText(spec) || undefined,
    },
    {
      name: 'Auto propose',
      type: 'boolean',
      jsonPath: '.spec.autoPropose',
      value: (object) => object.spec.autoPropose,
    },
    AGE_COLUMN,
  ],
});

/** The required gates of a policy in one cell of a table. */
export function gatesText({
  requiredGates,
}: {
  readonly requiredGates: readonly { readonly conditionType: string }[];
}) {
  return requiredGates.map(({ conditionType }) => conditionType).join(',');
}

export type PackagePolicy = ObjectOf<typeof packagePolicyKind>;
