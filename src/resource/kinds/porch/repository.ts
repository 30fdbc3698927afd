import { z } from 'zod';
import { parsePublicKeyList } from '../../../git/signing/public-key-list.ts';
import { findCondition } from '../../object/condition.ts';
import { type FieldCause, invalidValue } from '../../object/invalid-object.ts';
import { DNS_LABEL } from '../../object/name-rules.ts';
import type { DeepReadonly } from '../../object/object.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN, READY_COLUMN, READY_REASON_COLUMNS } from '../common/columns.ts';
import { conditionsSchema, observedGenerationSchema } from '../common/condition-schema.ts';
import { branchSchema, directorySchema, gitAddressSchema, secretRefSchema } from '../common/git-location.ts';
import { serverTimeSchema } from '../common/time-schema.ts';

/** Condition of a Repository: whether what this server signs counts in it. */
export const TRUST_CONDITION = 'sluice.dev/Trust';
/** Reports by its reason how Sluice connects to the remote, `OwnClient`, `Git`, or `ReadOnly` where pushing is not possible, and by its message why. */
export const TRANSPORT_CONDITION = 'sluice.dev/Transport';

/**
 * Type of a condition beside a Ready condition that is False, in a data folder without a server: its reason is the code of the error, for
 * clients that decide by it.
 */
export const READ_ERROR_CONDITION = 'sluice.dev/ReadError';
/** False while a rule of the Git host refuses what Sluice pushes; absent if none ever did. */
export const PUSHES_CONDITION = 'sluice.dev/PushesAccepted';

/**
 * Keys that a repository trusts in place of those of the server, in the format of OpenSSH, one per line: only commits that they
 * signed open gates, approve or are delivered there.
 */
export const TRUSTED_KEYS_ANNOTATION = 'sluice.dev/trusted-keys';

/** Annotation of a Repository: the folder on its main branch with policies for its namespace, relative to the root of the repository. */
export const POLICIES_ANNOTATION = 'sluice.dev/policies';
/** Whether the policies in that folder are valid; absent without the annotation. */
export const POLICIES_CONDITION = 'sluice.dev/PoliciesValid';

/** The state of the policies of a Repository, for its condition. */
export interface PoliciesReport {
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: 'Read' | 'Invalid' | 'NotRead';
  readonly message: string;
  /** Those in force; absent while none are known. */
  readonly inForce?: readonly PolicyInForce[];
}

/** Number of policies that are read from one repository. */
export const MAX_POLICIES = 100;
const MAX_FOLDER_CHARACTERS = 255;
const FOLDER = /^[A-Za-z0-9_+@-][A-Za-z0-9._+@-]*(\/[A-Za-z0-9_+@-][A-Za-z0-9._+@-]*)*$/;
const FOLDER_RULE =
  'must be the path of a folder such as governance/policies, of letters, digits and . _ + @ -, where no part begins with a dot';

/** The folder with policies that a Repository names, whether or not it is valid; undefined if it names none. */
export function policyFolderOf({ metadata: { annotations = {} } }: DeepReadonly<Repository>): string | undefined {
  return Object.hasOwn(annotations, POLICIES_ANNOTATION) ? annotations[POLICIES_ANNOTATION] : undefined;
}

/** Returns the rule that a folder does not meet; undefined if it is valid. */
export function policyFolderProblem(folder: string): string | undefined {
  if (folder.length <= MAX_FOLDER_CHARACTERS && FOLDER.test(folder)) return undefined;
  return `annotation ${POLICIES_ANNOTATION} ${FOLDER_RULE}`;
}

const policyInForce = z.object({
  name: z.string().describe('Name of the policy.'),
  file: z.string().describe('Path of its file in the repository.'),
  commit: z.string().describe('ID of the commit at which it was read.'),
  spec: z
    .looseObject({})
    .optional()
    .describe('Spec of a PackagePolicy, with defaults. Absent if the policies are larger than 256 KiB together.'),
});

/** A policy that was read from the folder of a Repository. */
export type PolicyInForce = DeepReadonly<z.output<typeof policyInForce>>;

const git = z.object({
  repo: gitAddressSchema,
  branch: branchSchema.default('main').describe('Branch with the published packages.'),
  createBranch: z.boolean().optional().describe('If true, creates the branch if it does not exist.'),
  directory: directorySchema.prefault('/'),
  secretRef: secretRefSchema.optional(),
  author: z.string().optional().describe('Author name of the commits.'),
  email: z.string().optional().describe('Author email address of the commits.'),
});

const sync = z.object({
  schedule: z.string().optional().describe('Cron schedule of full synchronisations.'),
  runOnceAt: z.string().optional().describe('Time of one additional synchronisation, in RFC 3339.'),
});

const oci = z.object({
  registry: z.string().describe('URL of the registry.'),
  secretRef: secretRefSchema.optional(),
});

export const repositoryKind = defineKind({
  group: 'config.porch.kpt.dev',
  version: 'v1alpha1',
  kind: 'Repository',
  plural: 'repositories',
  shortNames: ['repo'],
  categories: ['kpt', 'all'],
  description: 'A Git repository whose packages Sluice manages.',
  nameRule: DNS_LABEL,
  spec: z
    .object({
      description: z.string().optional().describe('Description of the repository.'),
      deployment: z
        .boolean()
        .optional()
        .describe('Whether the repository is a deployment repository, which clusters synchronise from.'),
      type: z.enum(['git', 'oci']).default('git').describe('Type of the repository. Only git is supported.'),
      content: z.string().default('Package').describe('Deprecated and not used.'),
      sync: sync.optional().describe('Synchronisation in addition to regular polling.'),
      git: git.optional().describe('Location of the Git repository. Required for type git.'),
      oci: oci.optional().describe('Location of the OCI registry, for type oci.'),
    })
    .describe('Desired state of the repository.'),
  status: z
    .object({
      conditions: conditionsSchema.optional(),
      lastFullSyncTime: serverTimeSchema.describe('Time of the last full synchronisation.'),
      nextFullSyncTime: serverTimeSchema.describe('Time of the next full synchronisation.'),
      observedGeneration: observedGenerationSchema,
      observedRunOnceAt: serverTimeSchema.describe('Value of spec.sync.runOnceAt that was last processed.'),
      packageCount: z.int().optional().describe('Number of packages in the repository.'),
      lastWebhookTime: serverTimeSchema.describe('Time of the last webhook notification for the repository.'),
      gitCommitHash: z.string().optional().describe('ID of the branch commit that was last synchronised.'),
      policies: z
        .array(policyInForce)
        .max(MAX_POLICIES)
        .optional()
        .describe(
          `Policies in force from the folder that the annotation ${POLICIES_ANNOTATION} names. Informative: Sluice decides by the branch.`,
        ),
      mergePublication: z
        .array(
          z.object({
            policy: z.string().describe('Name of the PackagePolicy.'),
            uid: z.string().describe('UID of the PackagePolicy.'),
            publishOn: z.string().describe('spec.review.publishOn of the policy for which it holds.'),
            commit: z
              .string()
              .optional()
              .describe(
                'The head of the main branch when it began; merges that are part of it publish nothing, except those made after the policy was created, and the Repository registered, if the policy was not changed since its creation.',
              ),
            ofUsers: z
              .object({ commit: z.string().optional().describe('As commit.') })
              .optional()
              .describe(
                'Since when merges of pull requests of users publish, where publishOn was changed between review and merge: both publish them.',
              ),
          }),
        )
        .optional()
        .describe('Since when merges of pull requests publish, by each policy with publishOn review or merge.'),
    })
    .describe('Observed state of the repository.'),
  // The server writes the status at once after a create and after each poll: a client that reads and updates would race with it.
  strategy: {
    updatesIgnoreStatusWrites: true,
    validate: ({ metadata }) => [
      ...trustedKeysCauses(metadata.annotations),
      ...policyFolderCauses(metadata.annotations),
    ],
  },
  immutableFields: ['spec.type', 'spec.git.repo', 'spec.git.branch', 'spec.git.directory', 'spec.oci.registry'],
  selectableFields: [{ path: 'spec.type' }, { path: 'spec.git.repo' }],
  printerColumns: [
    NAME_COLUMN,
    { name: 'Type', type: 'string', jsonPath: '.spec.type', value: (object) => object.spec.type },
    { name: 'Content', type: 'string', jsonPath: '.spec.content', value: (object) => object.spec.content },
    {
      name: 'Sync schedule',
      type: 'string',
      jsonPath: '.spec.sync.schedule',
      value: (object) => object.spec.sync?.schedule,
    },
    { name: 'Deployment', type: 'boolean', jsonPath: '.spec.deployment', value: (object) => object.spec.deployment },
    READY_COLUMN,
    {
      name: 'Address',
      type: 'string',
      jsonPath: '.spec.git.repo',
      value: (object) => object.spec.git?.repo ?? object.spec.oci?.registry,
    },
    {
      name: 'Branch',
      type: 'string',
      priority: 1,
      jsonPath: '.spec.git.branch',
      value: (object) => object.spec.git?.branch,
    },
    {
      name: 'Transport',
      type: 'string',
      priority: 1,
      jsonPath: `.status.conditions[?(@.type=="${TRANSPORT_CONDITION}")].reason`,
      value: ({ status }) => findCondition(status?.conditions, TRANSPORT_CONDITION)?.reason,
    },
    {
      name: 'Last webhook',
      type: 'date',
      priority: 1,
      jsonPath: '.status.lastWebhookTime',
      value: ({ status }) => status?.lastWebhookTime ?? undefined,
    },
    ...READY_REASON_COLUMNS,
    AGE_COLUMN,
  ],
});

export type Repository = ObjectOf<typeof repositoryKind>;

function trustedKeysCauses(annotations: Readonly<Record<string, string>> = {}): FieldCause[] {
  const text = Object.hasOwn(annotations, TRUSTED_KEYS_ANNOTATION) ? annotations[TRUSTED_KEYS_ANNOTATION] : undefined;
  if (text === undefined) return [];
  const rule = 'must be public keys of OpenSSH, one a line';
  const path = ['metadata', 'annotations', TRUSTED_KEYS_ANNOTATION];
  return parsePublicKeyList(text).problems.map((problem) =>
    invalidValue(path, text.slice(0, 100), `${rule}: ${problem}`),
  );
}

function policyFolderCauses(annotations: Readonly<Record<string, string>> = {}): FieldCause[] {
  const folder = Object.hasOwn(annotations, POLICIES_ANNOTATION) ? annotations[POLICIES_ANNOTATION] : undefined;
  if (folder === undefined || policyFolderProblem(folder) === undefined) return [];
  return [invalidValue(['metadata', 'annotations', POLICIES_ANNOTATION], folder.slice(0, 100), FOLDER_RULE)];
}
