import { randomUUID } from 'node:crypto';
import { systemClock } from '../../foundation/time/clock.ts';
import { DEFAULT_FUNCTION_LIMITS } from '../../function/model/pipeline.ts';

/** Limits of every function that is a program. */
export const PROGRAM_BOUNDS = {
  time: DEFAULT_FUNCTION_LIMITS.time,
  outputBytes: DEFAULT_FUNCTION_LIMITS.outputBytes,
  memoryBytes: 1024 * 1024 * 1024,
  clock: systemClock,
};

/** Limits of every function that is a container. */
export const CONTAINER_BOUNDS = { ...PROGRAM_BOUNDS, newName: () => `sluice-fn-${randomUUID()}` };
