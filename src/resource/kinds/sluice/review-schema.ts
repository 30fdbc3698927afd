// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how placeholders are written.
import { z } from 'zod';
import { clusterRules } from '../../schema/cluster-rule.ts';
import { forgeSchema, labelsSchema, loginSchema, reviewersSchema } from './forge-schema.ts';
import { reviewTemplateSchema } from './review-template.ts';

const MAX_USERS = 500;
const MAX_GATES = 50;
const MAX_GROUPS = 20;
const MAX_TEAMS = 20;
const MAX_BATCH = 200;
const DEFAULT_BATCH = 50;

const ONE_USER = 'must be the name of a user';

const SYSTEM_GROUP = 'must not begin with system:';

const groupsSchema = z
  .array(
    z
      .string()
      .min(1)
      .max(253)
      .regex(/^[^\s\x00-\x1f\x7f]+$/, 'must not contain white space or control characters')
      .refine((name) => !name.startsWith('system:'), SYSTEM_GROUP)
      .meta(clusterRules(["!self.startsWith('system:')", SYSTEM_GROUP])),
  )
  .max(MAX_GROUPS);

const conditionType = z.string().min(1).max(1024);

/** `spec.review` of a PackagePolicy: proposals become pull requests of a Git host. */
export const reviewSchema = z
  .object({
    forge: forgeSchema,
    publishOn: z
      .enum(['approval', 'review', 'merge'])
      .default('approval')
      .describe(
        'What publishes a proposal: approval, as without pull requests (default); review, approving reviews by enough of the approvers; or merge, the merge of its pull request.',
      ),
    mergeMethod: z
      .enum(['merge', 'squash', 'rebase'])
      .default('merge')
      .describe(
        'How Sluice has the host merge a pull request, where the rules of the host reserve the main branch for merges. With publishOn: merge only what controllers approve. Default: merge.',
      ),
    approvers: z
      .array(
        z.object({
          user: loginSchema.describe('Login of a user of the host.'),
          subject: z
            .string()
            .min(1)
            .max(253)
            .regex(/^[^\s\x00-\x1f\x7f]+$/, 'must not contain white space or control characters')
            .refine((name) => !/^(controller|group):/.test(name), ONE_USER)
            .meta(clusterRules(["!self.startsWith('controller:') && !self.startsWith('group:')", ONE_USER]))
            .describe('User in whose name an approving review approves. The user needs the right to approve.'),
          groups: groupsSchema
            .optional()
            .describe(
              'Groups of this user: for the right to approve, and for a quorum from group:<name>. Default: none.',
            ),
        }),
      )
      .max(MAX_USERS)
      .default([])
      .describe('Users of the host whose reviews count. Default: none.'),
    teams: z
      .array(
        z.object({
          team: z
            .string()
            .max(255)
            .regex(
              /^[A-Za-z0-9][A-Za-z0-9._-]*\/[A-Za-z0-9][A-Za-z0-9._-]*$/,
              'must be <organization>/<team> of the host',
            )
            .describe('Team of the host: <organization>/<team>.'),
          groups: groupsSchema.describe('Groups that its members are in, of the users of approvers.'),
        }),
      )
      .max(MAX_TEAMS)
      .default([])
      .describe('Teams of the host whose members, if approvers lists them, are in groups. Default: none.'),
    batch: z
      .object({
        maxPackages: z
          .int()
          .min(2)
          .max(MAX_BATCH)
          .default(DEFAULT_BATCH)
          .describe(`Most proposals of one pull request. Default: ${DEFAULT_BATCH}.`),
      })
      .optional()
      .describe(
        'Proposals of one repository share pull requests, such as those of a fan-out, instead of having one each. Default: one each.',
      ),
    reviewers: reviewersSchema,
    titleTemplate: reviewTemplateSchema(250)
      .optional()
      .describe(
        'Title of a pull request that Sluice opens, in which ${package}, ${workspace}, ${name}, ${namespace}, ${repository}, ${proposer}, ${upstream} and ${policy} stand for those of the proposal. Default: Publish ${package} (${workspace}).',
      ),
    bodyTemplate: reviewTemplateSchema(4000)
      .optional()
      .describe(
        'Text before the section of Sluice in a pull request that it opens, in Markdown, with the same placeholders, whose values are shown as code.',
      ),
    labels: labelsSchema,
    userPullRequests: z
      .enum(['check', 'adopt', 'ignore'])
      .default('check')
      .describe(
        'What happens with pull requests that users open: check, their packages are checked (default); adopt, those of branches of the repository become drafts as well; ignore, nothing.',
      ),
    gateChecks: z
      .array(conditionType)
      .max(MAX_GATES)
      .default([])
      .describe(
        'Condition types of gates that have a check of their own, sluice/gate/<condition type>, beside sluice/ready.',
      ),
  })
  .describe('Proposals become pull requests of the Git host, for review there.');
