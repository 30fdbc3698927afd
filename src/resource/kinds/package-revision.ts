import { z } from 'zod';
import { defineKind, type ObjectOf } from '../kind.ts';
import { packageConditionSchema } from './condition-schema.ts';

export const LIFECYCLES = ['Draft', 'Proposed', 'Published', 'DeletionProposed'] as const;

/** Set by the server on the highest published revision of a package. */
export const LATEST_REVISION_LABEL = 'kpt.dev/latest-revision';

const gitLocator = z.object({
  repo: z.string().optional(),
  directory: z.string().optional(),
  ref: z.string().optional(),
  commit: z.string().optional(),
});
const locator = z.object({ type: z.string().optional(), git: gitLocator.optional() });
const named = z.object({ name: z.string() });
const upstream = z.object({
  type: z.enum(['git', 'oci']).optional(),
  git: z.object({ repo: z.string(), ref: z.string(), directory: z.string(), secretRef: named.optional() }).optional(),
  oci: z.object({ image: z.string() }).optional(),
  upstreamRef: named.optional().describe('Name of a package revision.'),
});

const task = z.object({
  type: z.enum(['init', 'clone', 'edit', 'upgrade', 'render', 'push', 'patch', 'eval', 'update', '']),
  init: z
    .object({
      subpackage: z.string().optional(),
      description: z.string().optional(),
      keywords: z.array(z.string()).optional(),
      site: z.string().optional(),
    })
    .optional(),
  clone: z.object({ upstreamRef: upstream }).optional(),
  edit: z.object({ sourceRef: named }).optional(),
  upgrade: z
    .object({
      oldUpstreamRef: named,
      newUpstreamRef: named,
      localPackageRevisionRef: named,
      strategy: z.enum(['resource-merge', 'fast-forward', 'force-delete-replace', 'copy-merge']).optional(),
    })
    .optional(),
});

export const packageRevisionKind = defineKind({
  group: 'porch.kpt.dev',
  version: 'v1alpha1',
  kind: 'PackageRevision',
  plural: 'packagerevisions',
  categories: ['kpt'],
  description: 'One version of a package: a draft, a proposal or a published revision.',
  serverNamed: true,
  spec: z.object({
    packageName: z.string().min(1).describe('Path and name of the package inside the repository.'),
    repository: z.string().min(1).describe('Name of the Repository object.'),
    workspaceName: z.string().min(1).describe('Name of the line of work, unique for a package.'),
    revision: z
      .int()
      .optional()
      .describe('Number of a published revision, -1 for the state of the main branch, absent for drafts.'),
    parent: named.optional().describe('Not used any more.'),
    lifecycle: z.enum(LIFECYCLES).optional(),
    tasks: z.array(task).optional().describe('How the package came to be; on create at most one.'),
    readinessGates: z
      .array(z.object({ conditionType: z.string() }))
      .optional()
      .describe('Condition types that must be True before the package is published.'),
    packageMetadata: z
      .object({
        labels: z.record(z.string(), z.string()).optional(),
        annotations: z.record(z.string(), z.string()).optional(),
      })
      .optional()
      .describe('Labels and annotations in the Kptfile.'),
  }),
  status: z.object({
    upstreamLock: locator.optional(),
    selfLock: locator.optional(),
    publishedBy: z.string().optional(),
    publishTimestamp: z.string().nullish(),
    deployment: z.boolean().optional(),
    conditions: z.array(packageConditionSchema).optional(),
    resourcesSizeBytes: z.int().optional(),
  }),
  selectableFields: [
    { path: 'spec.revision', missing: '0' },
    { path: 'spec.packageName' },
    { path: 'spec.repository' },
    { path: 'spec.workspaceName' },
    { path: 'spec.lifecycle', values: LIFECYCLES },
    { path: 'spec.packageMetadata.labels[*]' },
  ],
  printerColumns: [
    { name: 'Name', type: 'string', value: (object) => object.metadata.name },
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
  ],
});

export type PackageRevision = ObjectOf<typeof packageRevisionKind>;
