import { z } from 'zod';
import { conditionStatusSchema } from '../../common/condition-schema.ts';

const timedState = (description: string) =>
  z
    .object({
      status: conditionStatusSchema,
      reason: z.string().describe('Machine-readable reason, one word in CamelCase.'),
      message: z.string().describe('Human-readable message, with the text of the engine.'),
      since: z.string().meta({ format: 'date-time' }).describe('Time since when the status holds, in RFC 3339.'),
    })
    .describe(description);

const synced = timedState('Whether the engine applied the delivered content.');
const healthy = timedState('Whether the engine reports the applied content as healthy.');
const healthyTree = z
  .string()
  .optional()
  .describe(
    "ID of a tree of the target's directory in which the package has the content that the engine reported as healthy last. Absent if a delivery has changed it since.",
  );
const history = {
  wasHealthy: z
    .boolean()
    .optional()
    .describe('True if the engine reported this content as healthy before; only with a status other than True.'),
  healthyTree,
  isShared: z
    .boolean()
    .optional()
    .describe('True if the report is about other packages or manifests too; only with a status other than True.'),
};

/** What the engine of a target reports: of the target as a whole, and of the packages that differ from most of them. */
export const targetDeploymentSchema = z
  .object({
    commit: z
      .string()
      .optional()
      .describe('The commit of the delivery that this is about; another one than lastCommit is outdated.'),
    engine: z
      .object({
        settings: z.string().max(1024).describe('The engine by spec.engine, with the digest of its settings.'),
        version: z.string().max(512).describe('UID and resource version of the Secret with the kubeconfig, if any.'),
      })
      .optional()
      .describe('What the reports were read from; other settings than those of spec.engine are outdated.'),
    delivered: timedState('Whether everything that the target selects is committed to its branch.'),
    synced,
    healthy,
    common: z
      .object({ synced, healthy, ...history })
      .describe('State of every package that is not listed in packages; since is the latest time of them.'),
    packages: z
      .array(
        z.object({
          repository: z.string().describe('Name of the Repository object.'),
          package: z.string().describe('Path of the package in the repository.'),
          ...{ synced, healthy, ...history },
        }),
      )
      .optional()
      .describe('Packages with another state than the common one. At most 1,000.'),
    unlisted: z
      .object({
        count: z.int().describe('Number of the packages.'),
        since: z.string().meta({ format: 'date-time' }).describe('Time of the last change of one of them.'),
        healthyTree: healthyTree.describe(
          'The healthyTree of every package that is not listed in packages, if all have the same.',
        ),
      })
      .optional()
      .describe('Packages that differ from the common state and are too many to list. Their state is not known here.'),
    objects: z
      .array(
        z.object({
          name: z
            .string()
            .describe('Kind, namespace and name of the object of the engine, or the context of a status.'),
          path: z.string().describe('Folder of the repository that it deploys.'),
          revision: z.string().optional().describe('Commit that it reported last as applied.'),
        }),
      )
      .optional()
      .describe('Objects of the engine that deploy the target. At most 20.'),
  })
  .describe('Report of the engine about the deployment of the target.');
