import { afterEach } from 'vitest';
import { isAlive } from '../external/testing-programs.ts';
import type { PipelineInput } from '../model/pipeline.ts';
import { type WorkerPipelineRunner, type WorkerRunnerOptions, workerPipelineRunner } from './worker-pipeline-runner.ts';

export const HOSTILE_WORKER = new URL('./testing-hostile-worker.ts', import.meta.url);
export const never = () => new AbortController().signal;
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const runners: WorkerPipelineRunner[] = [];

afterEach(async () => {
  await Promise.all(runners.splice(0).map((runner) => runner.close()));
});

export function open({ time = 20_000, ...options }: Partial<WorkerRunnerOptions> & { readonly time?: number } = {}) {
  const limits = { time, outputBytes: 1024 * 1024, resources: 100 };
  const runner = workerPipelineRunner({
    external: undefined,
    program: HOSTILE_WORKER,
    memory: 128,
    concurrency: 1,
    limits,
    ...options,
  });
  runners.push(runner);
  return runner;
}

export const image = (name: string) => `example.com/${name}:v1`;

/** A package whose pipeline has these entries as mutators; a text is a function of the worker. */
export function packageWith(...functions: (string | Readonly<Record<string, string>>)[]): PipelineInput {
  const mutators = functions.map((entry) => (typeof entry === 'string' ? { image: image(entry) } : entry));
  const kptfile = { apiVersion: 'kpt.dev/v1', kind: 'Kptfile', metadata: { name: 'example' }, pipeline: { mutators } };
  return { files: new Map([['Kptfile', JSON.stringify(kptfile)]]), rules: [], validatorConditions: new Map() };
}

export async function gone(pids: readonly number[]): Promise<boolean> {
  for (const pid of pids) if (await isAlive(pid)) return false;
  return true;
}

/** Waits until a condition is true; the timeout of the test is the bound. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(20);
}
