import * as z from 'zod';

/** The spec of a DeliveryTarget (sluice.dev/v1alpha1) as users write it. */
export const deliveryTargetSpec = z.strictObject({
  selector: z
    .strictObject({
      /** Names of package repositories; all without it. */
      repositories: z.array(z.string()).optional(),
      packageSelector: z.strictObject({ matchLabels: z.record(z.string(), z.string()).optional() }).optional(),
      /** Paths of packages; all without it. */
      packages: z.array(z.string()).optional(),
    })
    .default({}),
  git: z.strictObject({
    repo: z.string().min(1),
    branch: z.string().min(1).default('main'),
    directory: z.string().default('/'),
  }),
  /** What becomes of the folder of a package that is delivered no longer. Flux needs `empty`: a missing path is an error there. */
  onRemoval: z.enum(['empty', 'delete']).default('empty'),
  allowSecrets: z.boolean().default(false),
  allowOutOfBand: z.boolean().default(false),
  /** Revision number by package, `<path>` or `<repository>/<path>`: that revision and no other is delivered. */
  pins: z.record(z.string(), z.int().positive()).default({}),
});

export type DeliveryTargetSpec = z.infer<typeof deliveryTargetSpec>;

/** What of a target decides which trees are desired. */
export interface TargetSettings
  extends Pick<DeliveryTargetSpec, 'selector' | 'onRemoval' | 'allowSecrets' | 'allowOutOfBand' | 'pins'> {
  readonly name: string;
  /** As written, `/` is the root. */
  readonly directory: string;
}

/** The settings of a named target. */
export function settingsOf(name: string, spec: DeliveryTargetSpec): TargetSettings {
  const { selector, onRemoval, allowSecrets, allowOutOfBand, pins, git } = spec;
  return { name, directory: git.directory, selector, onRemoval, allowSecrets, allowOutOfBand, pins };
}
