// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how placeholders are written.
import { z } from 'zod';
import { clusterRules } from '../../schema/cluster-rule.ts';
import { httpUrlSchema } from '../common/http-url.ts';
import { reviewTemplateSchema } from './review-template.ts';

const MAX_USERS = 500;
const MAX_LABELS = 20;
const MAX_GATES = 50;

const ONE_USER = 'must be the name of a user';

/** No white space, no control characters, and no characters that are used in addresses or in Markdown. */
const login = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must be the name of a user or team of the host');
const label = z
  .string()
  .min(1)
  .max(50)
  .regex(/^[^\x00-\x1f\x7f,]+$/, 'must not contain commas or control characters');
const conditionType = z.string().min(1).max(1024);

/** `spec.review` of a PackagePolicy: proposals become pull requests of a Git host. */
export const reviewSchema = z
  .object({
    forge: z
      .object({
        provider: z.enum(['github', 'gitea', 'forgejo']).describe('Kind of the host.'),
        api: httpUrlSchema.describe(
          'Address of the API, such as https://api.github.com or https://git.example.com/api/v1.',
        ),
        secretRef: z
          .object({
            name: z.string().min(1).max(253).describe('Name of a Secret in the same namespace.'),
            key: z.string().min(1).max(253).default('token').describe('Key of the Secret. Default: token.'),
          })
          .describe(
            'Secret with a token that may write to the repositories and their issues, or with a GitHub App (githubAppID, githubAppPrivateKey).',
          ),
      })
      .describe('Host of the repositories.'),
    publishOn: z
      .enum(['approval', 'review', 'merge'])
      .default('approval')
      .describe(
        'What publishes a proposal: approval, as without pull requests (default); review, approving reviews by enough of the approvers; or merge, the merge of its pull request.',
      ),
    mergeMethod: z
      .enum(['merge', 'squash', 'rebase'])
      .default('merge')
      .describe('How Sluice merges a pull request through the host, where it has to. Default: merge.'),
    approvers: z
      .array(
        z.object({
          user: login.describe('Login of a user of the host.'),
          subject: z
            .string()
            .min(1)
            .max(253)
            .regex(/^[^\s\x00-\x1f\x7f]+$/, 'must not contain white space or control characters')
            .refine((name) => !/^(controller|group):/.test(name), ONE_USER)
            .meta(clusterRules(["!self.startsWith('controller:') && !self.startsWith('group:')", ONE_USER]))
            .describe('User in whose name an approving review approves. The user needs the right to approve.'),
        }),
      )
      .max(MAX_USERS)
      .default([])
      .describe('Users of the host whose reviews count. Default: none.'),
    reviewers: z
      .object({
        users: z.array(login).max(MAX_LABELS).default([]).describe('Logins.'),
        teams: z.array(login).max(MAX_LABELS).default([]).describe('Names of teams of the owner.'),
      })
      .prefault({})
      .describe('Users and teams whose review is requested.'),
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
    labels: z.array(label).max(MAX_LABELS).default([]).describe('Labels of the pull requests.'),
    gateChecks: z
      .array(conditionType)
      .max(MAX_GATES)
      .default([])
      .describe(
        'Condition types of gates that have a check of their own, sluice/gate/<condition type>, beside sluice/ready.',
      ),
  })
  .describe('Proposals become pull requests of the Git host, for review there.');
