import { z } from 'zod';
import { labelSelectorSchema } from '../../selector/label-selector.ts';

/** No package has such a path, since Git permits no branch with these characters: a pattern would select nothing without notice. */
const packagePath = z
  .string()
  .min(1)
  .regex(
    /^[^*?[]*$/,
    'must be the whole path of a package: "*", "?" and "[" are no wildcards; list the paths, or select by labels',
  );

/** Selects the packages of a target or policy; all given fields must match, none selects all. */
export const packageSelectorSchema = z.object({
  repositories: z.array(z.string().min(1)).optional().describe('Names of Repository objects.'),
  repositorySelector: labelSelectorSchema.optional().describe('Label selector for Repository objects.'),
  packages: z.array(packagePath).optional().describe('Paths of packages. Wildcards are not supported.'),
  packageSelector: labelSelectorSchema
    .optional()
    .describe('Label selector for package revisions; labels in the metadata of the Kptfile count as well.'),
});

/** The same for what lets controllers approve. */
export const approvingSelectorSchema = packageSelectorSchema.extend({
  packageSelector: labelSelectorSchema
    .optional()
    .describe('Label selector for package revisions, by labels that users who may approve, or controllers, have set.'),
});
