import { z } from 'zod';
import { defineKind } from '../kind.ts';

const resultItem = z.object({
  message: z.string().optional(),
  severity: z.string().optional(),
  resourceRef: z
    .object({
      apiVersion: z.string().optional(),
      kind: z.string().optional(),
      name: z.string().optional(),
      namespace: z.string().optional(),
    })
    .optional(),
  field: z
    .object({ path: z.string().optional(), currentValue: z.string().optional(), proposedValue: z.string().optional() })
    .optional(),
  file: z.object({ path: z.string().optional(), index: z.int().optional() }).optional(),
  tags: z.record(z.string(), z.string()).optional(),
});

export const packageRevisionResourcesKind = defineKind({
  group: 'porch.kpt.dev',
  version: 'v1alpha1',
  kind: 'PackageRevisionResources',
  plural: 'packagerevisionresources',
  singular: 'packagerevisionresources',
  categories: ['kpt'],
  description: 'The files of one package revision. Its name and uid are those of the package revision.',
  serverNamed: true,
  spec: z.object({
    packageName: z.string().optional(),
    workspaceName: z.string().optional(),
    revision: z.int().optional(),
    repository: z.string().optional(),
    resources: z.record(z.string(), z.string()).optional().describe('File path to text.'),
    disableRender: z.boolean().optional(),
  }),
  status: z.object({
    renderStatus: z
      .object({
        result: z
          .object({
            exitCode: z.int().optional(),
            items: z
              .array(
                z.object({
                  image: z.string().optional(),
                  exec: z.string().optional(),
                  stderr: z.string().optional(),
                  exitCode: z.int().optional(),
                  results: z.array(resultItem).optional(),
                }),
              )
              .optional(),
          })
          .optional(),
        error: z.string().optional(),
      })
      .optional(),
  }),
  selectableFields: [
    { path: 'spec.revision', missing: '0' },
    { path: 'spec.packageName' },
    { path: 'spec.repository' },
    { path: 'spec.workspaceName' },
  ],
  printerColumns: [
    { name: 'Name', type: 'string', value: (object) => object.metadata.name },
    { name: 'Package', type: 'string', value: (object) => object.spec.packageName },
    { name: 'WorkspaceName', type: 'string', value: (object) => object.spec.workspaceName },
    { name: 'Revision', type: 'integer', value: (object) => object.spec.revision ?? 0 },
    { name: 'Repository', type: 'string', value: (object) => object.spec.repository },
    { name: 'Files', type: 'integer', value: (object) => Object.keys(object.spec.resources ?? {}).length },
  ],
});
