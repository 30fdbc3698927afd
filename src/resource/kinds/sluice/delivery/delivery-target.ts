import { z } from 'zod';
import { durationSchema } from '../../../object/duration.ts';
import { clusterRules } from '../../../schema/cluster-rule.ts';
import { defineKind } from '../../../schema/define-kind.ts';
import type { ObjectOf } from '../../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN, READY_COLUMN } from '../../common/columns.ts';
import { conditionsSchema, observedGenerationSchema } from '../../common/condition-schema.ts';
import { branchSchema, directorySchema, gitAddressSchema, secretRefSchema } from '../../common/git-location.ts';
import { packageSelectorSchema } from '../package-selector.ts';
import { deliveryPullRequestSchema, deliveryPullRequestStatusSchema } from './delivery-pull-request-schema.ts';
import { engineSchema } from './engine-schema.ts';
import { targetDeploymentSchema } from './target-deployment-schema.ts';
import { targetHistorySchema } from './target-history-schema.ts';

/** Of the author of a commit, which has one line. */
const WITHOUT_CONTROLS = /^[^\p{Cc}<>]*$/u;
const NO_CONTROLS = 'must not contain control characters, < or >';
/** A rollback follows the reports of an engine. */
const ROLLBACK_NEEDS_ENGINE = 'needs spec.engine, whose reports it follows';

const git = z.object({
  repo: gitAddressSchema,
  branch: branchSchema.default('main').describe('Branch that manifests are committed to.'),
  directory: directorySchema.prefault('/'),
  secretRef: secretRefSchema.optional(),
  author: z.string().max(256).regex(WITHOUT_CONTROLS, NO_CONTROLS).optional().describe('Author name of the commits.'),
  email: z
    .string()
    .max(256)
    .regex(WITHOUT_CONTROLS, NO_CONTROLS)
    .optional()
    .describe('Author email address of the commits.'),
  createBranch: z.boolean().optional().describe('If true, creates the branch if it does not exist.'),
});

const pin = z.object({
  repository: z.string().min(1).describe('Name of the Repository object.'),
  package: z.string().min(1).describe('Path of the package in the repository.'),
  revision: z.int().min(1).describe('Revision number that is delivered.'),
});

const deliveredPackage = z.object({
  repository: z.string().describe('Name of the Repository object.'),
  package: z.string().describe('Path of the package in the repository.'),
  revision: z.int().describe('Revision number that is delivered.'),
  commit: z.string().describe('ID of the commit of the revision.'),
  tree: z.string().describe('ID of the Git tree with the manifests.'),
});

const rollback = z.object({
  repository: z.string().describe('Name of the Repository object.'),
  package: z.string().describe('Path of the package in the repository.'),
  from: z.int().describe('Number of the revision that failed.'),
  to: z.int().describe('Number of the earlier revision that is delivered instead.'),
  time: z.string().meta({ format: 'date-time' }).describe('Time of the decision, in RFC 3339.'),
  reason: z.string().describe('What the engine reported of the failed revision.'),
  commit: z.string().optional().describe('ID of the commit of the failed revision.'),
});

const failedRevision = z.object({
  repository: z.string().describe('Name of the Repository object.'),
  package: z.string().describe('Path of the package in the repository.'),
  revision: z.int().describe('Number of the revision that failed.'),
  time: z.string().meta({ format: 'date-time' }).describe('Time of the decision, in RFC 3339.'),
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
      description: z.string().optional().describe('Description of the target.'),
      selector: packageSelectorSchema.describe('Selector for the packages to deliver.'),
      git: git.describe('Git repository that the manifests are committed to.'),
      pins: z
        .array(pin)
        .optional()
        .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['repository', 'package'] })
        .describe(
          'Packages that are pinned to a revision. Other packages are delivered in their highest published revision.',
        ),
      onRemoval: z
        .enum(['empty', 'delete'])
        .default('delete')
        .describe('Action for the folder of a package that is no longer selected.'),
      allowSecrets: z.boolean().default(false).describe('If true, delivers Secrets that are not encrypted.'),
      allowOutOfBand: z
        .boolean()
        .default(false)
        .describe('If true, delivers revisions that were published without Sluice.'),
      allowPrune: z.boolean().optional().describe('If true, allows a commit that removes every package.'),
      render: z
        .enum(['none', 'kustomize', 'helm', 'passthrough'])
        .optional()
        .describe(
          'How packages that are kustomizations or Helm charts are delivered: none (default) refuses them, kustomize and helm deliver what the program renders, passthrough delivers their files as they are.',
        ),
      drift: z
        .enum(['Repair', 'Report'])
        .optional()
        .describe(
          'Action for a folder that another writer changed: Repair (default) restores it, Report keeps it and sets the condition Drifted.',
        ),
      suspend: z.boolean().optional().describe('If true, suspends delivery.'),
      pullRequest: deliveryPullRequestSchema.optional(),
      engine: engineSchema.optional(),
      rollback: z
        .object({
          unhealthyAfter: durationSchema.describe(
            'Duration for which the engine reports a delivered revision as unhealthy before the previous one is delivered, such as 10m.',
          ),
        })
        .optional()
        .describe(
          'Policy for going back to the previous revision of a package. Without it, no revision is rolled back.',
        ),
    })
    .refine(({ rollback, engine }) => rollback === undefined || engine !== undefined, {
      message: ROLLBACK_NEEDS_ENGINE,
      path: ['rollback'],
    })
    .meta(clusterRules(['!has(self.rollback) || has(self.engine)', `rollback ${ROLLBACK_NEEDS_ENGINE}`]))
    .describe('Desired deliveries.'),
  status: z
    .object({
      conditions: conditionsSchema.optional(),
      observedGeneration: observedGenerationSchema,
      lastCommit: z.string().optional().describe('ID of the commit that was last delivered.'),
      packageCount: z.int().optional().describe('Number of packages in the last delivered commit.'),
      packagesDigest: z
        .string()
        .optional()
        .describe('SHA-256 of the packages in the last delivered commit, which are objects of kind PackageDelivery.'),
      packages: z
        .array(deliveredPackage)
        .optional()
        .describe(
          'Deprecated: written by earlier versions, and replaced by objects of kind PackageDelivery. While it is present, it counts instead of them.',
        ),
      pullRequest: deliveryPullRequestStatusSchema.optional(),
      deployment: targetDeploymentSchema.optional(),
      history: targetHistorySchema.optional(),
      rollbacks: z
        .array(rollback)
        .optional()
        .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['repository', 'package'] })
        .describe(
          'Packages whose last revision failed, so that an earlier one is delivered until the next publication or "sluice target resume".',
        ),
      failedRevisions: z
        .array(failedRevision)
        .optional()
        .describe('The latest revisions that the target went back from, also after later publications. At most 100.'),
    })
    .describe('Observed state of the delivery.'),
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
    {
      name: 'Packages',
      type: 'integer',
      jsonPath: '.status.packageCount',
      value: ({ status }) => status?.packages?.length ?? status?.packageCount,
    },
    READY_COLUMN,
    {
      name: 'Synced',
      type: 'string',
      jsonPath: '.status.deployment.synced.status',
      value: (object) => object.status?.deployment?.synced.status,
    },
    {
      name: 'Healthy',
      type: 'string',
      jsonPath: '.status.deployment.healthy.status',
      value: (object) => object.status?.deployment?.healthy.status,
    },
    AGE_COLUMN,
  ],
});

export type DeliveryTarget = ObjectOf<typeof deliveryTargetKind>;
