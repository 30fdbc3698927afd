import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import { NAME_COLUMN } from '../common/columns.ts';

export const porchPackageKind = defineKind({
  group: 'porch.kpt.dev',
  version: 'v1alpha1',
  kind: 'PorchPackage',
  plural: 'packages',
  singular: 'package',
  categories: ['kpt'],
  description: 'A package: what all of its revisions have in common.',
  strategy: { serverNamed: true },
  spec: z
    .object({
      packageName: z.string().optional().describe('Path and name of the package in the repository.'),
      repository: z.string().optional().describe('Name of the Repository object.'),
    })
    .describe('Identity of the package.'),
  status: z
    .object({ latestRevision: z.int().optional().describe('Number of the latest published revision.') })
    .describe('Observed state of the package.'),
  selectableFields: [{ path: 'spec.packageName' }, { path: 'spec.repository' }],
  printerColumns: [
    NAME_COLUMN,
    { name: 'Package', type: 'string', value: (object) => object.spec.packageName },
    { name: 'Repository', type: 'string', value: (object) => object.spec.repository },
    { name: 'Latest Revision', type: 'integer', value: (object) => object.status?.latestRevision ?? 0 },
  ],
});
