import { z } from 'zod';
import type { DeepReadonly } from '../../object/object.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { conditionStatusSchema, packageConditionsSchema } from '../common/condition-schema.ts';
import { serverTimeSchema } from '../common/time-schema.ts';

/** Of the reason in a table. */
const MAX_REASON_CHARACTERS = 160;

export const LIFECYCLES = ['Draft', 'Proposed', 'Published', 'DeletionProposed'] as const;

/** Set by the server on the highest published revision of a package. */
export const LATEST_REVISION_LABEL = 'kpt.dev/latest-revision';

const gitLocator = z.object({
  repo: z.string().optional().describe('URL of the Git repository.'),
  directory: z.string().optional().describe('Folder of the package in the repository.'),
  ref: z.string().optional().describe('Branch or tag.'),
  commit: z.string().optional().describe('ID of the commit.'),
});
const locator = z.object({
  type: z.string().optional().describe('git.'),
  git: gitLocator.optional().describe('Location in Git.'),
});
const revisionRef = z.object({ name: z.string().describe('Name of the PackageRevision.') });
const upstream = z.object({
  type: z.enum(['git', 'oci']).optional().describe('Type of the upstream: git or oci. Only git is supported.'),
  git: z
    .object({
      repo: z.string().describe('URL of the Git repository.'),
      ref: z.string().describe('Branch, tag or commit ID.'),
      directory: z.string().describe('Folder of the package in the repository.'),
      secretRef: z
        .object({ name: z.string().describe('Name of a Secret in the same namespace.') })
        .optional()
        .describe('Credentials.'),
    })
    .optional()
    .describe('Package in a Git repository.'),
  oci: z
    .object({ image: z.string().describe('Reference of the image.') })
    .optional()
    .describe('Package in an OCI image. Not supported.'),
  upstreamRef: revisionRef.optional().describe('Reference to a package revision in a registered repository.'),
});

const task = z.object({
  type: z
    .enum(['init', 'clone', 'edit', 'upgrade', 'render', 'push', 'patch', 'eval', 'update', ''])
    .describe('Type of the task: init, clone, edit or upgrade. Existing Porch histories can contain further types.'),
  init: z
    .object({
      subpackage: z.string().optional().describe('Folder of the subpackage in the package.'),
      description: z.string().optional().describe('Description of the package.'),
      keywords: z.array(z.string()).optional().describe('Keywords for searching the package.'),
      site: z.string().optional().describe('URL of the website of the package.'),
    })
    .optional()
    .describe('Creates an empty package.'),
  clone: z
    .object({ upstreamRef: upstream.describe('Upstream package to clone.') })
    .optional()
    .describe('Clones an upstream package.'),
  edit: z
    .object({ sourceRef: revisionRef.describe('Package revision to copy.') })
    .optional()
    .describe('Creates a new revision from an existing revision of the same package.'),
  upgrade: z
    .object({
      oldUpstreamRef: revisionRef.describe('Upstream package revision that the package was last merged with.'),
      newUpstreamRef: revisionRef.describe('Upstream package revision to upgrade to.'),
      localPackageRevisionRef: revisionRef.describe('Package revision to upgrade.'),
      strategy: z
        .enum(['resource-merge', 'fast-forward', 'force-delete-replace', 'copy-merge'])
        .optional()
        .describe('Strategy for merging upstream and local changes.'),
    })
    .optional()
    .describe('Upgrades the package to another upstream revision.'),
});

const deployment = z.object({
  target: z.string().describe('Name of the DeliveryTarget.'),
  delivered: conditionStatusSchema.describe('Whether the target delivers the revision.'),
  synced: conditionStatusSchema.describe('Whether the engine of the target applied the delivered content.'),
  healthy: conditionStatusSchema.describe('Whether the engine reports the applied content as healthy.'),
  since: z.string().optional().describe('Time of the last change of synced or healthy, in RFC 3339.'),
  message: z.string().optional().describe('What the engine reports, where something is missing.'),
});
export type RevisionDeployment = DeepReadonly<z.output<typeof deployment>>;

const flaw = z.object({
  reason: z.string().describe('Machine-readable reason, one word in CamelCase.'),
  message: z.string().describe('Human-readable message.'),
});

interface DisplayedRevision {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | undefined };
  readonly status?:
    | {
        readonly conditions?: readonly DisplayedCondition[] | undefined;
        readonly outOfBand?: { readonly message: string } | undefined;
      }
    | undefined;
}

interface DisplayedCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}

function readyOf({ status }: DisplayedRevision) {
  return status?.conditions?.find(({ type }) => type === 'sluice.dev/Ready');
}

/** Messages that repeat the column of the gates. */
const COUNT_OF_GATES = /^(?:\d+ of \d+ gates closed: |the gate is open; |all \d+ gates are open; )/;

/** `1/3`: open gates of all, as the message counts them. */
function countOfGates(message = ''): string | undefined {
  if (/^the gate is open(?:;|$)/.test(message)) return '1/1';
  const [, all] = /^all (\d+) gates are open(?:;|$)/.exec(message) ?? [];
  if (all !== undefined) return `${all}/${all}`;
  const [, closed, of] = /^(\d+) of (\d+) gates closed: /.exec(message) ?? [];
  return closed === undefined ? undefined : `${Number(of) - Number(closed)}/${of}`;
}

/** Returns why a revision makes no progress: closed gates, or other problems. */
function reasonOf(object: DisplayedRevision): string | undefined {
  const { metadata, status } = object;
  const ready = readyOf(object);
  if (ready !== undefined && ready.status !== 'True') return ready.message?.replace(COUNT_OF_GATES, '');
  const problem = metadata.annotations?.['sluice.dev/problem'] ?? status?.outOfBand?.message;
  if (problem !== undefined) return problem;
  const failed = status?.conditions?.find(
    ({ type, status: value }) => value === 'False' && ['Rendered', 'sluice.dev/Deliverable'].includes(type),
  );
  return failed === undefined ? undefined : `${failed.type}: ${failed.message ?? failed.reason ?? ''}`;
}

/** For a table; `sluice why` has all of it. */
function shortened(text: string | undefined): string | undefined {
  const characters = [...(text ?? '')];
  return characters.length <= MAX_REASON_CHARACTERS
    ? text
    : `${characters.slice(0, MAX_REASON_CHARACTERS - 1).join('')}…`;
}

export const packageRevisionKind = defineKind({
  group: 'porch.kpt.dev',
  version: 'v1alpha1',
  kind: 'PackageRevision',
  plural: 'packagerevisions',
  shortNames: ['rpkg'],
  categories: ['kpt', 'all'],
  description: 'One version of a package: a draft, a proposal or a published revision.',
  strategy: { serverNamed: true },
  spec: z
    .object({
      packageName: z.string().min(1).describe('Path and name of the package in the repository.'),
      repository: z.string().min(1).describe('Name of the Repository object.'),
      workspaceName: z.string().min(1).describe('Name of the workspace, unique within the package.'),
      revision: z
        .int()
        .optional()
        .describe('Revision number of a published revision; -1 for the content of the main branch; absent for drafts.'),
      parent: revisionRef.optional().describe('Deprecated and not used.'),
      lifecycle: z
        .enum(LIFECYCLES)
        .optional()
        .describe('Lifecycle stage: Draft, Proposed, Published or DeletionProposed.'),
      tasks: z.array(task).optional().describe('Tasks that created the revision. At most one on create.'),
      readinessGates: z
        .array(z.object({ conditionType: z.string().describe('Type of the condition.') }))
        .optional()
        .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['conditionType'] })
        .describe('Condition types that must be True before the revision is published.'),
      packageMetadata: z
        .object({
          labels: z.record(z.string(), z.string()).optional().describe('Labels in the Kptfile.'),
          annotations: z.record(z.string(), z.string()).optional().describe('Annotations in the Kptfile.'),
        })
        .optional()
        .describe('Metadata of the Kptfile.'),
    })
    .describe('Desired state of the package revision.'),
  status: z
    .object({
      upstreamLock: locator.optional().describe('Location of the upstream package that the revision was cloned from.'),
      selfLock: locator.optional().describe('Location of the revision itself.'),
      publishedBy: z.string().optional().describe('User who approved the revision.'),
      publishTimestamp: serverTimeSchema.describe('Time at which the revision was published.'),
      deployment: z.boolean().optional().describe('Whether the repository of the revision is a deployment repository.'),
      conditions: packageConditionsSchema.optional(),
      contributors: z
        .array(
          z.object({
            name: z.string().describe('Name of the user; push for a Git push by an unidentified user.'),
            face: z.string().describe('Interface through which the change was made: cli, api or git.'),
            since: z.string().describe('Time of the first change.'),
          }),
        )
        .optional()
        .describe('Users who changed the content since the last published revision.'),
      approvals: z
        .object({
          needed: z.int().describe('Number of approvals that are required.'),
          given: z
            .array(
              z.object({
                subject: z.string().describe('User who approved the revision.'),
                face: z.string().describe('Interface through which the approval was given: cli, api or git.'),
                at: z.string().describe('When.'),
              }),
            )
            .describe('Recorded approvals. An approval of different content does not count.'),
        })
        .optional()
        .describe('Approval progress of a proposed revision that requires more than one approval.'),
      outOfBand: flaw
        .optional()
        .describe('Reason why the revision does not count as published through the gates; absent if it does.'),
      recordDistrust: flaw
        .optional()
        .describe(
          'Reason why Sluice does not trust the record of verdicts and approvals of the revision; absent if it does.',
        ),
      deployments: z
        .array(deployment)
        .optional()
        .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['target'] })
        .describe(
          'The targets that deliver the revision, and what their engines report. Computed when the revision is read: a change causes no event of a watch.',
        ),
      resourcesSizeBytes: z.int().optional().describe('Total size of the files in bytes.'),
    })
    .describe('Observed state of the package revision.'),
  selectableFields: [
    { path: 'spec.revision', missing: '0' },
    { path: 'spec.packageName' },
    { path: 'spec.repository' },
    { path: 'spec.workspaceName' },
    { path: 'spec.lifecycle', values: LIFECYCLES },
    { path: 'spec.packageMetadata.labels[*]' },
  ],
  printerColumns: [
    NAME_COLUMN,
    { name: 'Package', type: 'string', value: (object) => object.spec.packageName },
    { name: 'WorkspaceName', type: 'string', value: (object) => object.spec.workspaceName },
    { name: 'Revision', type: 'integer', value: (object) => object.spec.revision ?? 0 },
    {
      name: 'Latest',
      type: 'boolean',
      value: (object) => object.metadata.labels?.[LATEST_REVISION_LABEL] === 'true',
    },
    { name: 'Lifecycle', type: 'string', value: (object) => object.spec.lifecycle },
    { name: 'Repository', type: 'string', value: (object) => object.spec.repository },
    // Wide only: scripts of Porch's users count the columns before.
    { name: 'Ready', type: 'string', priority: 1, value: (object) => readyOf(object)?.status },
    { name: 'Gates', type: 'string', priority: 1, value: (object) => countOfGates(readyOf(object)?.message) },
    { ...AGE_COLUMN, priority: 1 },
    { name: 'Reason', type: 'string', priority: 1, value: (object) => shortened(reasonOf(object)) },
  ],
});

export type PackageRevision = ObjectOf<typeof packageRevisionKind>;
