import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import { NAME_COLUMN } from '../common/columns.ts';

const resultItem = z.object({
  message: z.string().optional().describe('Human-readable message of the result.'),
  severity: z.string().optional().describe('Severity of the result: error, warning or info.'),
  resourceRef: z
    .object({
      apiVersion: z.string().optional().describe('API version of the resource.'),
      kind: z.string().optional().describe('Kind of the resource.'),
      name: z.string().optional().describe('Name of the resource.'),
      namespace: z.string().optional().describe('Namespace of the resource.'),
    })
    .optional()
    .describe('Resource that the result is about.'),
  field: z
    .object({
      path: z.string().optional().describe('Path of the field in the resource.'),
      currentValue: z.string().optional().describe('Current value of the field.'),
      proposedValue: z.string().optional().describe('Proposed value of the field.'),
    })
    .optional()
    .describe('Field that the result is about.'),
  file: z
    .object({
      path: z.string().optional().describe('Path of the file in the package.'),
      index: z.int().optional().describe('Index of the document in the file, starting at 0.'),
    })
    .optional()
    .describe('File that the result is about.'),
  tags: z.record(z.string(), z.string()).optional().describe('Additional information, by key.'),
});

const functionResult = z.object({
  image: z.string().optional().describe('Image of the function.'),
  exec: z.string().optional().describe('Executable of the function.'),
  stderr: z.string().optional().describe('Standard error of the function.'),
  exitCode: z.int().optional().describe('Exit code of the function; 0 is success.'),
  results: z.array(resultItem).optional().describe('Results that the function reported.'),
});

export const renderStatusSchema = z.object({
  result: z
    .object({
      exitCode: z.int().optional().describe('Exit code of the pipeline; 0 is success.'),
      items: z.array(functionResult).optional().describe('Results of the functions, in the order of the pipeline.'),
    })
    .optional()
    .describe('Result list of the pipeline.'),
  error: z.string().optional().describe('Error that stopped rendering.'),
});

export const packageRevisionResourcesKind = defineKind({
  group: 'porch.kpt.dev',
  version: 'v1alpha1',
  kind: 'PackageRevisionResources',
  plural: 'packagerevisionresources',
  singular: 'packagerevisionresources',
  categories: ['kpt'],
  description: 'The files of one package revision. Its name and uid are those of the package revision.',
  strategy: { serverNamed: true },
  // A package has up to 10,000 files.
  maxValues: 11_000,
  spec: z
    .object({
      packageName: z.string().optional().describe('Path and name of the package in the repository.'),
      workspaceName: z.string().optional().describe('Workspace name of the revision.'),
      revision: z.int().optional().describe('Revision number; absent for drafts.'),
      repository: z.string().optional().describe('Name of the Repository object.'),
      resources: z.record(z.string(), z.string()).optional().describe('Contents of the files, by path.'),
      binaryResources: z
        .record(z.string(), z.string())
        .optional()
        .describe(
          'Contents of binary files in base64, by path. An update without this field keeps them; an update with it removes all others.',
        ),
      disableRender: z.boolean().optional().describe('If true, stores the files without rendering the package.'),
    })
    .describe('Files of the package revision.'),
  status: z
    .object({
      renderStatus: renderStatusSchema.optional().describe('Result of rendering the package.'),
      skippedFiles: z
        .array(z.string())
        .optional()
        .describe('Entries of the package that are not in this object, such as symbolic links, each with its type.'),
    })
    .describe('Observed state of the files.'),
  selectableFields: [
    { path: 'spec.revision', missing: '0' },
    { path: 'spec.packageName' },
    { path: 'spec.repository' },
    { path: 'spec.workspaceName' },
  ],
  printerColumns: [
    NAME_COLUMN,
    { name: 'Package', type: 'string', value: (object) => object.spec.packageName },
    { name: 'WorkspaceName', type: 'string', value: (object) => object.spec.workspaceName },
    { name: 'Revision', type: 'integer', value: (object) => object.spec.revision ?? 0 },
    { name: 'Repository', type: 'string', value: (object) => object.spec.repository },
    {
      name: 'Files',
      type: 'integer',
      value: ({ spec }) => Object.keys(spec.resources ?? {}).length + Object.keys(spec.binaryResources ?? {}).length,
    },
  ],
});
