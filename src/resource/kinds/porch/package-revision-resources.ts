import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import { NAME_COLUMN } from '../common/columns.ts';

const resultItem = z.object({
  message: z.string().optional().describe('What was found, for people.'),
  severity: z.string().optional().describe('error, warning or info.'),
  resourceRef: z
    .object({
      apiVersion: z.string().optional().describe('API version of the resource.'),
      kind: z.string().optional().describe('Kind of the resource.'),
      name: z.string().optional().describe('Name of the resource.'),
      namespace: z.string().optional().describe('Namespace of the resource.'),
    })
    .optional()
    .describe('The resource that it is about.'),
  field: z
    .object({
      path: z.string().optional().describe('Path of the field.'),
      currentValue: z.string().optional().describe('The value that it has.'),
      proposedValue: z.string().optional().describe('The value that it should have.'),
    })
    .optional()
    .describe('The field that it is about.'),
  file: z
    .object({
      path: z.string().optional().describe('Path of the file in the package.'),
      index: z.int().optional().describe('Which document of the file, from 0.'),
    })
    .optional()
    .describe('The file that it is about.'),
  tags: z.record(z.string(), z.string()).optional().describe('Further facts by name.'),
});

const functionResult = z.object({
  image: z.string().optional().describe('Image of the function.'),
  exec: z.string().optional().describe('Program of the function.'),
  stderr: z.string().optional().describe('What the function wrote to its error output.'),
  exitCode: z.int().optional().describe('Exit code of the function; 0 is success.'),
  results: z.array(resultItem).optional().describe('What the function found.'),
});

const renderStatus = z.object({
  result: z
    .object({
      exitCode: z.int().optional().describe('Exit code of the pipeline; 0 is success.'),
      items: z.array(functionResult).optional().describe('Result of every function, in order.'),
    })
    .optional()
    .describe('Results of the functions.'),
  error: z.string().optional().describe('Why the package could not be rendered.'),
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
      packageName: z.string().optional().describe('Path and name of the package inside the repository.'),
      workspaceName: z.string().optional().describe('Name of the line of work.'),
      revision: z.int().optional().describe('Number of a published revision, absent for drafts.'),
      repository: z.string().optional().describe('Name of the Repository object.'),
      resources: z.record(z.string(), z.string()).optional().describe('File path to text.'),
      disableRender: z.boolean().optional().describe('Store the files without rendering the package.'),
    })
    .describe('The files and where they belong.'),
  status: z
    .object({ renderStatus: renderStatus.optional().describe('What came out of rendering.') })
    .describe('What was made of the files.'),
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
    { name: 'Files', type: 'integer', value: (object) => Object.keys(object.spec.resources ?? {}).length },
  ],
});
