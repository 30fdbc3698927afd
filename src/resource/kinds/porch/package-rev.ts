import { defineKind } from '../../schema/define-kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';

/** Porch keeps labels and owners of package revisions in objects of this kind. Sluice makes none: it keeps them in Git. */
export const packageRevKind = defineKind({
  group: 'config.porch.kpt.dev',
  version: 'v1alpha1',
  kind: 'PackageRev',
  plural: 'packagerevs',
  description: 'Metadata of a package revision in Porch. Sluice keeps it in Git and makes no such objects.',
  printerColumns: [NAME_COLUMN, AGE_COLUMN],
});
