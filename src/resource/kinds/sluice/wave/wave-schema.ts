import { z } from 'zod';
import { durationSchema } from '../../../object/duration.ts';
import { clusterRules } from '../../../schema/cluster-rule.ts';
import { approvingSelectorSchema } from '../package-selector.ts';
import { REACHABLE_QUORUM, refuseUnreachable } from '../quorum-rule.ts';

const MAX_NAME_CHARACTERS = 63;
const MAX_TARGETS = 10_000;
const MAX_ANALYSES = 10;
const MAX_ARGS = 50;
const MAX_SUBJECTS = 50;

/** A package must not decide which domain its address is in. */
const PROBE_URL =
  /^https?:\/\/([A-Za-z0-9.:-]+|(\{repository\}|\{name\}|[A-Za-z0-9.-])+\.[A-Za-z][A-Za-z0-9-]*(:[0-9]{1,5})?)([/?#][^\s]*)?$/;
const PROBE_URL_RULE =
  'must be an http:// or https:// URL without a user name or password, with placeholders only before a domain or in the path';

const AMOUNT = 'must be a number of targets, or a percentage such as "2%"';
const ONE_SIZE = 'must have exactly one of percent, count and selector';
const ONE_APPROVAL = 'must have exactly one of required and manual';

/** A number of targets, or a part of all. */
export const amountSchema = z
  .union([
    z.int().min(0).max(MAX_TARGETS),
    z
      .string()
      .max(16)
      .regex(/^\d{1,3}(\.\d{1,3})?%$/, AMOUNT),
  ])
  .meta({ 'x-kubernetes-int-or-string': true });

export const waveNameSchema = z
  .string()
  .max(MAX_NAME_CHARACTERS)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'must consist of lower case letters, digits and "-"');

const approval = z
  .object({
    required: z.int().min(1).max(20).optional().describe('Number of users who have to approve the start of the wave.'),
    from: z
      .array(z.string().min(1).max(253))
      .min(1)
      .max(MAX_SUBJECTS)
      .optional()
      .describe('Users, or group:<name>, whose approvals count. Defaults to all who may change the plan.'),
    manual: z.literal(true).optional().describe('Equal to required: 1.'),
  })
  .refine(({ required, manual }) => (required === undefined) !== (manual === undefined), ONE_APPROVAL)
  .superRefine(({ required = 1, from = [] }, context) => refuseUnreachable(required, from, context))
  .meta(clusterRules(['has(self.required) != has(self.manual)', ONE_APPROVAL], REACHABLE_QUORUM))
  .describe('Approval that the wave waits for before it starts.');

const analysis = z.object({
  template: z.string().min(1).max(253).describe('Name of an AnalysisTemplate in the same namespace.'),
  args: z
    .array(
      z.object({
        name: z.string().min(1).max(63).describe('Name of the argument.'),
        value: z.string().max(253).describe('Value of the argument.'),
      }),
    )
    .max(MAX_ARGS)
    .optional()
    .describe('Arguments of the template.'),
});

export const waveSchema = z
  .object({
    name: waveNameSchema.describe('Name of the wave, unique in the plan.'),
    percent: z
      .number()
      .gt(0)
      .max(100)
      .optional()
      .describe('Cumulative part of all targets, rounded up: 1 of 30 is one target, which is part of a later 5.'),
    count: z.int().min(1).max(MAX_TARGETS).optional().describe('Number of targets of this wave.'),
    selector: approvingSelectorSchema.optional().describe('Selector for the targets of this wave.'),
    soak: durationSchema
      .default('0')
      .describe('Time for which all targets of the wave must stay verified before the next wave starts.'),
    approval: approval.optional(),
    analysis: z
      .array(analysis)
      .max(MAX_ANALYSES)
      .default([])
      .describe('Analyses that must be successful before the next wave starts.'),
    maxConcurrency: amountSchema
      .optional()
      .describe(
        'Number, or percentage, of the targets of the wave that are approved and not yet verified at a time. Defaults to all.',
      ),
  })
  .refine(
    ({ percent, count, selector }) => [percent, count, selector].filter((one) => one !== undefined).length === 1,
    ONE_SIZE,
  )
  .meta(
    clusterRules([
      '(has(self.percent) ? 1 : 0) + (has(self.count) ? 1 : 0) + (has(self.selector) ? 1 : 0) == 1',
      ONE_SIZE,
    ]),
  );

/** What has to be so before a target counts as done. */
export const verificationSchema = z
  .object({
    deployed: z
      .object({
        targets: z
          .array(z.string().min(1).max(253))
          .max(MAX_SUBJECTS)
          .optional()
          .describe('Names of the DeliveryTargets that have to report it. Defaults to all that deliver the package.'),
      })
      .optional()
      .describe('The GitOps engine reports the approved revision as synced and healthy. This is the default.'),
    condition: z
      .object({ type: z.string().min(1).max(253).describe('Type of the condition.') })
      .optional()
      .describe(
        'A condition in the status of the WaveTarget, which an external program sets: True, or False for a failure.',
      ),
    http: z
      .object({
        url: z
          .string()
          .max(2048)
          .regex(PROBE_URL, PROBE_URL_RULE)
          .describe(
            'Address. {repository}, {package} and {name} (the last folder of the package) are replaced; only {repository} and {name} in the host, before a domain.',
          ),
        interval: durationSchema.default('30s').describe('Time between two requests for one target.'),
      })
      .optional()
      .describe('A GET request is answered with a status from 200 to 299. Redirects are not followed.'),
  })
  .refine(
    (one) => Object.values(one).filter((each) => each !== undefined).length <= 1,
    'must have at most one of deployed, condition and http',
  )
  .meta(
    clusterRules([
      '(has(self.deployed) ? 1 : 0) + (has(self.condition) ? 1 : 0) + (has(self.http) ? 1 : 0) <= 1',
      'must have at most one of deployed, condition and http',
    ]),
  )
  .describe('When a target counts as done.');
