import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { packageConditionsSchema } from '../common/condition-schema.ts';
import { serverTimeSchema } from '../common/time-schema.ts';

export const LIFECYCLES = ['Draft', 'Proposed', 'Published', 'DeletionProposed'] as const;

/** Set by the server on the highest published revision of a package. */
export const LATEST_REVISION_LABEL = 'kpt.dev/latest-revision';

const gitLocator = z.object({
  repo: z.string().optional().describe('Address of the Git repository.'),
  directory: z.string().optional().describe('Folder of the package in the repository.'),
  ref: z.string().optional().describe('Branch or tag.'),
  commit: z.string().optional().describe('The commit.'),
});
const locator = z.object({
  type: z.string().optional().describe('git.'),
  git: gitLocator.optional().describe('The place in Git.'),
});
const revisionRef = z.object({ name: z.string().describe('Name of a package revision.') });
const upstream = z.object({
  type: z.enum(['git', 'oci']).optional().describe('git or oci; only git can be used.'),
  git: z
    .object({
      repo: z.string().describe('Address of the Git repository.'),
      ref: z.string().describe('Branch, tag or commit.'),
      directory: z.string().describe('Folder of the package in the repository.'),
      secretRef: z
        .object({ name: z.string().describe('Name of a Secret in the same namespace.') })
        .optional()
        .describe('Credentials.'),
    })
    .optional()
    .describe('A package in a Git repository.'),
  oci: z
    .object({ image: z.string().describe('Address of the image.') })
    .optional()
    .describe('A package in an image.'),
  upstreamRef: revisionRef.optional().describe('A package revision in a registered repository.'),
});

const task = z.object({
  type: z
    .enum(['init', 'clone', 'edit', 'upgrade', 'render', 'push', 'patch', 'eval', 'update', ''])
    .describe('What is done: init, clone, edit or upgrade; old histories have others.'),
  init: z
    .object({
      subpackage: z.string().optional().describe('Folder of a package inside the package.'),
      description: z.string().optional().describe('What the package is.'),
      keywords: z.array(z.string()).optional().describe('Words to find the package by.'),
      site: z.string().optional().describe('Web page of the package.'),
    })
    .optional()
    .describe('Make an empty package.'),
  clone: z
    .object({ upstreamRef: upstream.describe('The package to start from.') })
    .optional()
    .describe('Start from another package.'),
  edit: z
    .object({ sourceRef: revisionRef.describe('The revision to start from.') })
    .optional()
    .describe('Start from a revision of the same package.'),
  upgrade: z
    .object({
      oldUpstreamRef: revisionRef.describe('The upstream revision that the package comes from.'),
      newUpstreamRef: revisionRef.describe('The upstream revision to go to.'),
      localPackageRevisionRef: revisionRef.describe('The revision of the package to start from.'),
      strategy: z
        .enum(['resource-merge', 'fast-forward', 'force-delete-replace', 'copy-merge'])
        .optional()
        .describe('How changes of both sides are brought together.'),
    })
    .optional()
    .describe('Merge what changed upstream.'),
});

const flaw = z.object({
  reason: z.string().describe('One CamelCase word for programs.'),
  message: z.string().describe('One sentence for people.'),
});

interface Shown {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | undefined };
  readonly status?:
    | {
        readonly conditions?: readonly ShownCondition[] | undefined;
        readonly outOfBand?: { readonly message: string } | undefined;
      }
    | undefined;
}

interface ShownCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}

function readyOf({ status }: Shown) {
  return status?.conditions?.find(({ type }) => type === 'sluice.dev/Ready');
}

/** What the column of the gates shows already. */
const COUNT_OF_GATES = /^(?:\d+ of \d+ gates closed: |the gate is open; |all \d+ gates are open; )/;

/** `1/3`: open gates of all, as the message counts them. */
function countOfGates(message = ''): string | undefined {
  if (/^the gate is open(?:;|$)/.test(message)) return '1/1';
  const [, all] = /^all (\d+) gates are open(?:;|$)/.exec(message) ?? [];
  if (all !== undefined) return `${all}/${all}`;
  const [, closed, of] = /^(\d+) of (\d+) gates closed: /.exec(message) ?? [];
  return closed === undefined ? undefined : `${Number(of) - Number(closed)}/${of}`;
}

/** Why a revision does not move on: closed gates, or what else is wrong with it. */
function reasonOf(object: Shown): string | undefined {
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
      packageName: z.string().min(1).describe('Path and name of the package inside the repository.'),
      repository: z.string().min(1).describe('Name of the Repository object.'),
      workspaceName: z.string().min(1).describe('Name of the line of work, unique for a package.'),
      revision: z
        .int()
        .optional()
        .describe('Number of a published revision, -1 for the state of the main branch, absent for drafts.'),
      parent: revisionRef.optional().describe('Not used any more.'),
      lifecycle: z.enum(LIFECYCLES).optional().describe('Draft, Proposed, Published or DeletionProposed.'),
      tasks: z.array(task).optional().describe('How the package came to be; on create at most one.'),
      readinessGates: z
        .array(z.object({ conditionType: z.string().describe('Type of the condition.') }))
        .optional()
        .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['conditionType'] })
        .describe('Condition types that must be True before the package is published.'),
      packageMetadata: z
        .object({
          labels: z.record(z.string(), z.string()).optional().describe('Labels in the Kptfile.'),
          annotations: z.record(z.string(), z.string()).optional().describe('Annotations in the Kptfile.'),
        })
        .optional()
        .describe('Labels and annotations in the Kptfile.'),
    })
    .describe('What the revision is and its desired state.'),
  status: z
    .object({
      upstreamLock: locator.optional().describe('Where the package was cloned from.'),
      selfLock: locator.optional().describe('Where the revision is kept.'),
      publishedBy: z.string().optional().describe('Who approved the revision.'),
      publishTimestamp: serverTimeSchema.describe('When it was published.'),
      deployment: z.boolean().optional().describe('True if clusters sync from its repository.'),
      conditions: packageConditionsSchema.optional(),
      contributors: z
        .array(
          z.object({
            name: z.string().describe('The user; push for a git push by an unknown person.'),
            face: z.string().describe('How the change came: cli, api or git.'),
            since: z.string().describe('When the first change was made.'),
          }),
        )
        .optional()
        .describe('Who changed the content since the last published revision.'),
      approvals: z
        .object({
          needed: z.int().describe('How many people have to approve it.'),
          given: z
            .array(
              z.object({
                subject: z.string().describe('Who approved it.'),
                face: z.string().describe('How the approval came.'),
                at: z.string().describe('When.'),
              }),
            )
            .describe('The approvals that were recorded; one of other content does not count.'),
        })
        .optional()
        .describe('Approvals of a proposed revision that needs more than one.'),
      outOfBand: flaw
        .optional()
        .describe('Why the revision does not count as published through the gates; absent if it does.'),
      recordDistrust: flaw
        .optional()
        .describe('Why the record with the verdicts and approvals of the revision does not count; absent if it does.'),
      resourcesSizeBytes: z.int().optional().describe('Size of all files together.'),
    })
    .describe('The observed state of the revision.'),
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
    { name: 'Reason', type: 'string', priority: 1, value: reasonOf },
  ],
});

export type PackageRevision = ObjectOf<typeof packageRevisionKind>;
