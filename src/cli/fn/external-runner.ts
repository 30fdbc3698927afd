import { randomUUID } from 'node:crypto';
import { systemClock } from '../../foundation/clock.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { ENGINES } from '../../function/external/container-arguments.ts';
import { engineEnvironment } from '../../function/external/container-engine.ts';
import { externalFunctions } from '../../function/external/external-functions.ts';
import type { ExternalRunner } from '../../function/external/external-runner.ts';
import { DEFAULT_FUNCTION_LIMITS } from '../../function/pipeline/pipeline.ts';

/** What a person lets functions do. */
export interface Permissions {
  readonly exec: boolean;
  readonly network: boolean;
}

const MEMORY_BYTES = 1024 * 1024 * 1024;
const PULL = { always: 'always', ifNotPresent: 'missing', never: 'never' } as const;

/** Programs and containers as a person runs them for packages of their own. */
export function externalRunner(
  permissions: Permissions,
  pull: keyof typeof PULL,
  environment: NodeJS.ProcessEnv,
): ExternalRunner {
  const bounds = {
    time: DEFAULT_FUNCTION_LIMITS.time,
    outputBytes: DEFAULT_FUNCTION_LIMITS.outputBytes,
    memoryBytes: MEMORY_BYTES,
    clock: systemClock,
  };
  const wanted = environment.KRM_FN_RUNTIME;
  const engine = ENGINES.find((name) => name === wanted);
  if (wanted !== undefined && wanted !== '' && engine === undefined)
    throw new SluiceError('InvalidInput', `KRM_FN_RUNTIME must be one of ${ENGINES.join(', ')}`);
  return externalFunctions({
    programs: {
      ...bounds,
      allowed: permissions.exec ? { anyFrom: process.cwd(), path: environment.PATH ?? '/usr/bin:/bin' } : undefined,
    },
    containers: {
      ...bounds,
      ...(engine === undefined ? {} : { engine }),
      env: engineEnvironment(environment),
      requireDigest: false,
      allowNetwork: permissions.network,
      pull: PULL[pull],
      newName: () => `sluice-fn-${randomUUID()}`,
    },
  });
}
