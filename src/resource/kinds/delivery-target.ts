import { z } from 'zod';
import { findCondition } from '../condition.ts';
import { defineKind, type ObjectOf } from '../kind.ts';
import { conditionSchema } from './condition-schema.ts';
import { branchSchema, directorySchema, gitAddressSchema, secretRefSchema } from './git-location.ts';
import { packageSelectorSchema } from './package-selector.ts';

export const deliveryTargetKind = defineKind({
  group: 'sluice.dev',
  version: 'v1alpha1',
  kind: 'DeliveryTarget',
  plural: 'deliverytargets',
  shortNames: ['dt'],
  categories: ['sluice'],
  description: 'A branch and folder into which the manifests of published packages are committed.',
  spec: z.object({
    description: z.string().optional(),
    selector: packageSelectorSchema.describe('The packages that are delivered.'),
    git: z.object({
      repo: gitAddressSchema,
      branch: branchSchema.default('main'),
      directory: directorySchema.default('/'),
      secretRef: secretRefSchema.optional(),
      author: z.string().optional().describe('Name in the commits.'),
      email: z.string().optional().describe('Address in the commits.'),
      createBranch: z.boolean().optional().describe('Create the branch if it is not there.'),
    }),
    pins: z
      .array(z.object({ repository: z.string().min(1), package: z.string().min(1), revision: z.int().min(1) }))
      .optional()
      .describe('Packages that stay at one revision instead of the highest.'),
    onRemoval: z
      .enum(['empty', 'delete'])
      .default('delete')
      .describe('What happens to the folder of a package that is no longer selected.'),
    allowSecrets: z.boolean().default(false).describe('Deliver Secrets that are not encrypted.'),
    allowOutOfBand: z.boolean().default(false).describe('Deliver revisions that were published without Sluice.'),
    allowPrune: z.boolean().optional().describe('Allow a commit that removes every package.'),
    suspend: z.boolean().optional().describe('Deliver nothing for now.'),
  }),
  status: z.object({
    conditions: z.array(conditionSchema).optional(),
    observedGeneration: z.int().optional(),
    lastCommit: z.string().optional(),
    packages: z
      .array(
        z.object({
          repository: z.string(),
          package: z.string(),
          revision: z.int(),
          commit: z.string(),
          tree: z.string(),
        }),
      )
      .optional()
      .describe('What the last commit holds.'),
  }),
  printerColumns: [
    { name: 'Name', type: 'string', value: (object) => object.metadata.name },
    { name: 'Address', type: 'string', value: (object) => object.spec.git.repo },
    { name: 'Branch', type: 'string', value: (object) => object.spec.git.branch },
    { name: 'Directory', type: 'string', value: (object) => object.spec.git.directory },
    { name: 'Packages', type: 'integer', value: (object) => object.status?.packages?.length },
    { name: 'Ready', type: 'string', value: (object) => findCondition(object.status?.conditions, 'Ready')?.status },
    { name: 'Age', type: 'date', value: (object) => object.metadata.creationTimestamp },
  ],
});

export type DeliveryTarget = ObjectOf<typeof deliveryTargetKind>;
