import { z } from 'zod';
import { durationSchema } from '../../object/duration.ts';
import { lookalikeProblem } from '../../object/lookalike.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { conditionsSchema, observedGenerationSchema } from '../common/condition-schema.ts';
import { packageSelectorSchema } from './package-selector.ts';

const conditionPattern = z
  .string()
  .regex(/^[^*\s]*\*?$/, 'must be a condition type, or the start of one followed by "*"')
  .min(1)
  .superRefine(refuseLookalike);
const conditionType = z.string().min(1).superRefine(refuseLookalike);

function refuseLookalike(type: string, context: z.RefinementCtx): void {
  const problem = type === '' ? undefined : lookalikeProblem(type);
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
}

export const packagePolicyKind = defineKind({
  group: 'sluice.dev',
  version: 'v1alpha1',
  kind: 'PackagePolicy',
  plural: 'packagepolicies',
  shortNames: ['pp'],
  categories: ['sluice', 'all'],
  description: 'Rules for the packages that it selects: gates, who may give verdicts, who may approve.',
  spec: z
    .object({
      selector: packageSelectorSchema.default({}).describe('The packages that the rules are for; all by default.'),
      requiredGates: z
        .array(
          z.object({
            conditionType: conditionType.describe('The condition that must be True.'),
            approveOnly: z.boolean().optional().describe('Required at approval, not at proposal.'),
            boundTo: z
              .enum(['content', 'object'])
              .optional()
              .describe(
                'For a type <group>/<version>.<Kind>.<name>: whether it is given for the whole content (the default) or for that object.',
              ),
          }),
        )
        .default([])
        .describe('Gates besides those in the Kptfile.'),
      givers: z
        .array(
          z.object({
            conditionType: conditionPattern.describe('A condition type, or a prefix followed by "*".'),
            actors: z.array(z.string().min(1)).describe('Names of actors, or group:<name>.'),
          }),
        )
        .default([])
        .describe('Who may give conditions of a type; a type that is not listed may be given by all users.'),
      validFor: z
        .array(
          z.object({
            conditionType: conditionPattern.describe('Condition type, or the start of some followed by "*".'),
            duration: durationSchema.describe('Time from when the condition was set or affirmed, such as 24h.'),
          }),
        )
        .default([])
        .describe('How long a condition counts; after that its gate is closed until it is affirmed.'),
      pushMayGive: z.boolean().default(true).describe('Whether conditions count that arrive by a plain git push.'),
      pushDenied: z.array(conditionPattern).default([]).describe('Condition types that a push may never give.'),
      validatorConditions: z
        .array(
          z.object({
            function: z
              .string()
              .min(1)
              .describe('Name of the pipeline entry, or of its image without registry and tag.'),
            conditionType: conditionType.describe('The condition that its findings become.'),
            image: z
              .string()
              .regex(/[:@][^/]+$/, 'must have a tag or a digest')
              .optional()
              .describe(
                'Pins the function: its findings count as those of controller:render, also where users may change the package, if the pipeline has exactly this image with this configuration. Without it they count as given by the contributors of the package.',
              ),
            configMap: z
              .record(z.string(), z.string())
              .optional()
              .describe('With image: the configMap that the pipeline entry must have.'),
            config: z
              .record(z.string(), z.unknown())
              .optional()
              .describe(
                'With image: the configuration object that the pipeline entry must have (configPath, configRef).',
              ),
          }),
        )
        .default([])
        .describe('Validators whose findings become a condition of their own, which a gate can wait for.'),
      kptfileApprovals: z
        .boolean()
        .default(false)
        .describe(
          'Whether annotations in the Kptfile can request automatic proposal and approval, as those of the object can.',
        ),
      autoPropose: z.boolean().default(false).describe('Propose drafts whose gates are open.'),
      approval: z
        .object({
          forbidSelfApproval: z
            .boolean()
            .default(false)
            .describe('Contributors and the proposer of a revision may not approve it.'),
          breakGlass: z
            .array(z.string().min(1))
            .default([])
            .describe('Users, or group:<name>, who may publish with closed gates, giving a reason.'),
        })
        .prefault({})
        .describe('Rules for approval.'),
      commitBudgetPerHour: z
        .int()
        .min(0)
        .default(50)
        .describe('How many commits controllers may make on one revision in an hour.'),
      gateDeadlines: z
        .array(
          z.object({
            conditionType: conditionType.describe('The condition that is waited for.'),
            after: durationSchema.describe('Time from the start of waiting, such as 30m or 24h.'),
          }),
        )
        .default([])
        .describe('After which time a closed gate is reported as overdue.'),
    })
    .describe('The rules.'),
  status: z
    .object({ conditions: conditionsSchema.optional(), observedGeneration: observedGenerationSchema })
    .describe('What was made of the rules.'),
  printerColumns: [
    NAME_COLUMN,
    {
      name: 'Gates',
      type: 'string',
      value: (object) => object.spec.requiredGates.map((gate) => gate.conditionType).join(','),
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

export type PackagePolicy = ObjectOf<typeof packagePolicyKind>;
