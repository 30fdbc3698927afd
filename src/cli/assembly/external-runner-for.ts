import { randomUUID } from 'node:crypto';
import { systemClock } from '../../foundation/clock.ts';
import { engineEnvironment } from '../../function/external/container-engine.ts';
import { externalFunctions } from '../../function/external/external-functions.ts';
import type { ExternalRunner } from '../../function/external/external-runner.ts';
import { DEFAULT_FUNCTION_LIMITS } from '../../function/pipeline/pipeline.ts';

import type { FunctionSettings } from './function-settings.ts';

const MEMORY_BYTES = 1024 * 1024 * 1024;

/** The runner of functions outside of this process that such settings allow. */
export function externalRunnerFor(settings: FunctionSettings, environment: NodeJS.ProcessEnv): ExternalRunner {
  const { time, outputBytes } = DEFAULT_FUNCTION_LIMITS;
  const bounds = { time, outputBytes, memoryBytes: MEMORY_BYTES, clock: systemClock };
  return externalFunctions({
    programs: { ...bounds, allowed: settings.programs === undefined ? undefined : { folder: settings.programs } },
    containers: settings.containers
      ? {
          ...bounds,
          env: engineEnvironment(environment),
          requireDigest: settings.requireDigest,
          allowNetwork: false,
          pull: 'missing',
          newName: () => `sluice-fn-${randomUUID()}`,
        }
      : undefined,
  });
}
