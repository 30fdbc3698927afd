import { engineEnvironment } from '../../function/external/container-engine.ts';
import { externalFunctions } from '../../function/external/external-functions.ts';
import type { ExternalRunner } from '../../function/external/external-runner.ts';
import { CONTAINER_BOUNDS, PROGRAM_BOUNDS } from './external-bounds.ts';
import type { FunctionSettings } from './function-settings.ts';

const INSTEAD = 'let a FunctionPolicy name a built-in function or a program in its place';

/** Creates the runner of programs and containers for a server with such settings. */
export function externalRunnerFor(
  { programs, containers, requireDigest }: FunctionSettings,
  environment: NodeJS.ProcessEnv,
): ExternalRunner {
  return externalFunctions({
    programs:
      programs === undefined
        ? 'start the server with --function-programs <folder>, or name a built-in function'
        : { ...PROGRAM_BOUNDS, allowed: { folder: programs } },
    containers: containers
      ? {
          ...CONTAINER_BOUNDS,
          env: engineEnvironment(environment),
          requireDigest,
          allowNetwork: false,
          pull: 'missing',
          instead: INSTEAD,
        }
      : `start the server with --containers, or ${INSTEAD}`,
  });
}
