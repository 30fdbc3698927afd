import { z } from 'zod';
import { labelSelectorSchema } from '../../selector/label-selector.ts';

/** Which packages a target or a policy is about; every field that is given must hold, none selects all. */
export const packageSelectorSchema = z.object({
  repositories: z.array(z.string().min(1)).optional().describe('Names of Repository objects.'),
  repositorySelector: labelSelectorSchema.optional().describe('Label selector for Repository objects.'),
  packages: z.array(z.string().min(1)).optional().describe('Paths of packages. Wildcards are not supported.'),
  packageSelector: labelSelectorSchema
    .optional()
    .describe('Label selector for package revisions; labels in the metadata of the Kptfile count as well.'),
});
