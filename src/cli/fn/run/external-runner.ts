import { CONTAINER_BOUNDS, PROGRAM_BOUNDS } from '../../../app/functions/external-bounds.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { ENGINES } from '../../../function/external/container-arguments.ts';
import { engineEnvironment } from '../../../function/external/container-engine.ts';
import { externalFunctions } from '../../../function/external/external-functions.ts';
import type { ExternalRunner } from '../../../function/external/external-runner.ts';

/** Permissions that a user grants to functions. */
export interface Permissions {
  readonly exec: boolean;
  readonly network: boolean;
}

const PULL = { always: 'always', ifNotPresent: 'missing', never: 'never' } as const;

/** Creates the runner of programs and containers for a user's own packages. */
export function externalRunner(
  permissions: Permissions,
  pull: keyof typeof PULL,
  environment: NodeJS.ProcessEnv,
): ExternalRunner {
  const wanted = environment.KRM_FN_RUNTIME;
  const engine = ENGINES.find((name) => name === wanted);
  if (wanted !== undefined && wanted !== '' && engine === undefined)
    throw new SluiceError('InvalidInput', `KRM_FN_RUNTIME must be one of ${ENGINES.join(', ')}`);
  return externalFunctions({
    programs: permissions.exec
      ? { ...PROGRAM_BOUNDS, allowed: { anyFrom: process.cwd(), path: environment.PATH ?? '/usr/bin:/bin' } }
      : 'allow them with --allow-exec, or name a built-in function',
    containers: {
      ...CONTAINER_BOUNDS,
      ...(engine === undefined ? {} : { engine }),
      env: engineEnvironment(environment),
      requireDigest: false,
      allowNetwork: permissions.network,
      pull: PULL[pull],
      instead: 'name a built-in function in its place (sluice fn doc lists them)',
    },
  });
}
