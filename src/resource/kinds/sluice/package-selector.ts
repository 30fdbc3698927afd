import { z } from 'zod';
import { labelSelectorSchema } from '../../selector/label-selector.ts';

/** Selects the packages of a target or policy; all given fields must match, none selects all. */
export const packageSelectorSchema = z.object({
  repositories: z.array(z.string().min(1)).optional().describe('Names of Repository objects.'),
  repositorySelector: labelSelectorSchema.optional().describe('Label selector for Repository objects.'),
  packages: z.array(z.string().min(1)).optional().describe('Paths of packages. Wildcards are not supported.'),
  packageSelector: labelSelectorSchema
    .optional()
    .describe('Label selector for package revisions; labels in the metadata of the Kptfile count as well.'),
});
