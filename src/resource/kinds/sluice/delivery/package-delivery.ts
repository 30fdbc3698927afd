import { z } from 'zod';
import { defineKind } from '../../../schema/define-kind.ts';
import type { ObjectOf } from '../../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../../common/columns.ts';

/** Characters of a commit that a table shows. */
const SHORT_COMMIT_CHARACTERS = 12;

const status = z
  .object({
    revision: z.int().describe('Revision number that is delivered.'),
    commit: z.string().describe('ID of the commit of the revision. Empty if it is not known.'),
    tree: z.string().describe('ID of the Git tree with the manifests. Empty if it is not known.'),
    folder: z.string().optional().describe('Folder of the package in the branch of the target.'),
    deliveredAt: z
      .string()
      .meta({ format: 'date-time' })
      .optional()
      .describe('Time at which Sluice recorded the delivery of this revision, in RFC 3339.'),
    drifted: z
      .boolean()
      .optional()
      .describe(
        'True if another writer changed the folder, and it stays so: with spec.drift: Report, or while the package is refused.',
      ),
  })
  .describe('Revision that is delivered.');

/**
 * Controllers write all of it, and no user may. Therefore the status is no sub-resource: a creation would drop it, so that each
 * package would need two writes, and a crash between them would leave an object without a revision.
 */
export const packageDeliveryKind = defineKind({
  group: 'sluice.dev',
  version: 'v1alpha1',
  kind: 'PackageDelivery',
  plural: 'packagedeliveries',
  shortNames: ['pkgdel'],
  categories: ['sluice', 'all'],
  description: 'A package that is delivered to a DeliveryTarget. Sluice writes and deletes these objects.',
  spec: z
    .object({
      target: z.string().min(1).describe('Name of the DeliveryTarget.'),
      repository: z.string().min(1).describe('Name of the Repository object.'),
      package: z.string().min(1).describe('Path of the package in the repository.'),
    })
    .describe('Target and package.'),
  fields: { status: status.optional() },
  immutableFields: ['spec.target', 'spec.repository', 'spec.package'],
  printerColumns: [
    NAME_COLUMN,
    { name: 'Target', type: 'string', jsonPath: '.spec.target', value: (object) => object.spec.target },
    { name: 'Package', type: 'string', jsonPath: '.spec.package', value: (object) => object.spec.package },
    { name: 'Revision', type: 'integer', jsonPath: '.status.revision', value: (object) => object.status?.revision },
    {
      name: 'Commit',
      type: 'string',
      jsonPath: '.status.commit',
      value: (object) => object.status?.commit.slice(0, SHORT_COMMIT_CHARACTERS),
    },
    AGE_COLUMN,
  ],
  selectableFields: [{ path: 'spec.target' }],
});

export type PackageDelivery = ObjectOf<typeof packageDeliveryKind>;
