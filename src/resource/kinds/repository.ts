import { z } from 'zod';
import { findCondition } from '../condition.ts';
import { defineKind, type ObjectOf } from '../kind.ts';
import { DNS_LABEL } from '../name-rules.ts';
import { conditionSchema } from './condition-schema.ts';
import { branchSchema, directorySchema, gitAddressSchema, secretRefSchema } from './git-location.ts';

export const repositoryKind = defineKind({
  group: 'config.porch.kpt.dev',
  version: 'v1alpha1',
  kind: 'Repository',
  plural: 'repositories',
  shortNames: ['repo'],
  categories: ['kpt'],
  description: 'A Git repository whose packages Sluice manages.',
  nameRule: DNS_LABEL,
  spec: z.object({
    description: z.string().optional(),
    deployment: z.boolean().optional().describe('True if clusters sync from this repository.'),
    type: z.enum(['git', 'oci']).default('git').describe('Only git can be used.'),
    content: z.string().default('Package').describe('Not used any more.'),
    sync: z
      .object({
        schedule: z.string().optional().describe('Cron expression of the full sync.'),
        runOnceAt: z.string().optional().describe('Time of one further sync, RFC 3339.'),
      })
      .optional(),
    git: z
      .object({
        repo: gitAddressSchema,
        branch: branchSchema.default('main').describe('The branch that published packages are on.'),
        createBranch: z.boolean().optional().describe('Create the branch if it is not there.'),
        directory: directorySchema.default('/'),
        secretRef: secretRefSchema.optional(),
        author: z.string().optional().describe('Name in the commits.'),
        email: z.string().optional().describe('Address in the commits.'),
      })
      .optional(),
    oci: z.object({ registry: z.string(), secretRef: secretRefSchema.optional() }).optional(),
  }),
  status: z.object({
    conditions: z.array(conditionSchema).optional(),
    lastFullSyncTime: z.string().nullish(),
    nextFullSyncTime: z.string().nullish(),
    observedGeneration: z.int().optional(),
    observedRunOnceAt: z.string().nullish(),
    packageCount: z.int().optional(),
    gitCommitHash: z.string().optional().describe('The commit of the branch that was last read.'),
  }),
  selectableFields: [{ path: 'spec.type' }, { path: 'spec.git.repo' }],
  printerColumns: [
    { name: 'Name', type: 'string', value: (object) => object.metadata.name },
    { name: 'Type', type: 'string', value: (object) => object.spec.type },
    { name: 'Content', type: 'string', value: (object) => object.spec.content },
    { name: 'Sync schedule', type: 'string', value: (object) => object.spec.sync?.schedule },
    { name: 'Deployment', type: 'boolean', value: (object) => object.spec.deployment },
    { name: 'Ready', type: 'string', value: (object) => findCondition(object.status?.conditions, 'Ready')?.status },
    { name: 'Address', type: 'string', value: (object) => object.spec.git?.repo ?? object.spec.oci?.registry },
    { name: 'Branch', type: 'string', priority: 1, value: (object) => object.spec.git?.branch },
    { name: 'Age', type: 'date', value: (object) => object.metadata.creationTimestamp },
  ],
});

export type Repository = ObjectOf<typeof repositoryKind>;
