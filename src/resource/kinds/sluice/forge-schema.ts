import { z } from 'zod';
import { apiUrlSchema } from '../common/http-url.ts';

const MAX_NAMES = 20;

/** Name of a user or team: no white space, no control characters, and no characters that are used in addresses or in Markdown. */
export const loginSchema = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must be the name of a user or team of the host, without its organization');

const label = z
  .string()
  .min(1)
  .max(50)
  .regex(/^[^\x00-\x1f\x7f,]+$/, 'must not contain commas or control characters');

export const labelsSchema = z.array(label).max(MAX_NAMES).default([]).describe('Labels of the pull requests.');

export const reviewersSchema = z
  .object({
    users: z.array(loginSchema).max(MAX_NAMES).default([]).describe('Logins.'),
    teams: z.array(loginSchema).max(MAX_NAMES).default([]).describe('Names of teams of the owner.'),
  })
  .prefault({})
  .describe('Users and teams whose review is requested.');

/** A host with pull requests. */
export const forgeSchema = z
  .object({
    provider: z.enum(['github', 'gitea', 'forgejo']).describe('Kind of the host.'),
    api: apiUrlSchema.describe('Address of the API, such as https://api.github.com or https://git.example.com/api/v1.'),
    secretRef: z
      .object({
        name: z.string().min(1).max(253).describe('Name of a Secret in the same namespace.'),
        key: z.string().min(1).max(253).default('token').describe('Key of the Secret. Default: token.'),
      })
      .describe(
        'Secret with a token that may write to the repositories and their issues, or with a GitHub App (githubAppID, githubAppPrivateKey).',
      ),
  })
  .describe('Host of the repositories.');
