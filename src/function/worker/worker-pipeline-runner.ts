import { availableParallelism } from 'node:os';
import { type Clock, systemClock } from '../../foundation/time/clock.ts';
import type { ExternalRunner } from '../external/external-runner.ts';
import { DEFAULT_FUNCTION_LIMITS, type FunctionLimits, type PipelineRunner } from '../model/pipeline.ts';
import { runInWorker } from './run-in-worker.ts';
import { WorkerPool } from './worker-pool.ts';
import { PIPELINE_WORKER } from './worker-process.ts';

export interface WorkerRunnerOptions {
  /** Runs functions outside of this process; undefined refuses them all. */
  readonly external: ExternalRunner | undefined;
  /** The program of a worker; tests use one with other functions. */
  readonly program?: URL;
  readonly limits?: FunctionLimits;
  /** Maximum number of packages that are rendered at a time; by default one less than the number of cores. */
  readonly concurrency?: number;
  /** MiB of JavaScript objects for one rendering. */
  readonly memory?: number;
  readonly clock?: Clock;
}

const MAX_MEMORY_MIB = 512;

/** A PipelineRunner, and the process ids of its workers. */
export interface WorkerPipelineRunner extends PipelineRunner {
  readonly pids: readonly number[];
}

/**
 * Renders packages in worker processes, which start with the first package and are reused. A function that throws, hangs,
 * ends its process or takes too much memory is a failed step with its name; hanging renderings do not block others.
 */
export function workerPipelineRunner(options: WorkerRunnerOptions): WorkerPipelineRunner {
  const {
    external,
    limits = DEFAULT_FUNCTION_LIMITS,
    program = PIPELINE_WORKER,
    memory = MAX_MEMORY_MIB,
    clock = systemClock,
  } = options;
  const concurrency = options.concurrency ?? Math.max(1, availableParallelism() - 1);
  const pool = new WorkerPool({ program, memory, clock, concurrency });
  return {
    run: (input, signal, onEvent) =>
      pool.use(signal, (worker) => runInWorker(worker, { input, limits, external, clock, signal, onEvent })),
    close: () => pool.close(),
    get pids() {
      return pool.pids;
    },
  };
}
