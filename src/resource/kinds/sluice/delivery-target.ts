import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN, READY_COLUMN } from '../common/columns.ts';
import { conditionsSchema, observedGenerationSchema } from '../common/condition-schema.ts';
import { branchSchema, directorySchema, gitAddressSchema, secretRefSchema } from '../common/git-location.ts';
import { packageSelectorSchema } from './package-selector.ts';

const git = z.object({
  repo: gitAddressSchema,
  branch: branchSchema.default('main').describe('The branch that manifests are committed to.'),
  directory: directorySchema.prefault('/'),
  secretRef: secretRefSchema.optional(),
  author: z.string().optional().describe('Name in the commits.'),
  email: z.string().optional().describe('Address in the commits.'),
  createBranch: z.boolean().optional().describe('Create the branch if it is not there.'),
});

const pin = z.object({
  repository: z.string().min(1).describe('Name of the Repository object.'),
  package: z.string().min(1).describe('Path of the package in the repository.'),
  revision: z.int().min(1).describe('The revision that is delivered.'),
});

const deliveredPackage = z.object({
  repository: z.string().describe('Name of the Repository object.'),
  package: z.string().describe('Path of the package in the repository.'),
  revision: z.int().describe('The revision that is delivered.'),
  commit: z.string().describe('The commit of the revision.'),
  tree: z.string().describe('The Git tree of the manifests.'),
});

export const deliveryTargetKind = defineKind({
  group: 'sluice.dev',
  version: 'v1alpha1',
  kind: 'DeliveryTarget',
  plural: 'deliverytargets',
  shortNames: ['dt'],
  categories: ['sluice', 'all'],
  description: 'A branch and folder into which the manifests of published packages are committed.',
  spec: z
    .object({
      description: z.string().optional().describe('What the target is for.'),
      selector: packageSelectorSchema.describe('The packages that are delivered.'),
      git: git.describe('Where the manifests go.'),
      pins: z
        .array(pin)
        .optional()
        .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['repository', 'package'] })
        .describe('Packages that stay at one revision instead of the highest.'),
      onRemoval: z
        .enum(['empty', 'delete'])
        .default('delete')
        .describe('What happens to the folder of a package that is no longer selected.'),
      allowSecrets: z.boolean().default(false).describe('Deliver Secrets that are not encrypted.'),
      allowOutOfBand: z.boolean().default(false).describe('Deliver revisions that were published without Sluice.'),
      allowPrune: z.boolean().optional().describe('Allow a commit that removes every package.'),
      suspend: z.boolean().optional().describe('Deliver nothing for now.'),
    })
    .describe('What is delivered and where.'),
  status: z
    .object({
      conditions: conditionsSchema.optional(),
      observedGeneration: observedGenerationSchema,
      lastCommit: z.string().optional().describe('The commit that was delivered last.'),
      packages: z.array(deliveredPackage).optional().describe('What the last commit holds.'),
    })
    .describe('What was delivered.'),
  printerColumns: [
    NAME_COLUMN,
    { name: 'Address', type: 'string', jsonPath: '.spec.git.repo', value: (object) => object.spec.git.repo },
    { name: 'Branch', type: 'string', jsonPath: '.spec.git.branch', value: (object) => object.spec.git.branch },
    {
      name: 'Directory',
      type: 'string',
      jsonPath: '.spec.git.directory',
      value: (object) => object.spec.git.directory,
    },
    { name: 'Packages', type: 'integer', value: (object) => object.status?.packages?.length },
    READY_COLUMN,
    AGE_COLUMN,
  ],
});

export type DeliveryTarget = ObjectOf<typeof deliveryTargetKind>;
