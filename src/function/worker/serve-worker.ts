import { Worker } from 'node:worker_threads';
import { isSluiceError, messageOf } from '../../foundation/sluice-error.ts';
import { Catalog } from '../catalog/catalog.ts';
import type { KrmFunction } from '../model/function.ts';
import { runPipeline } from '../pipeline/run-pipeline.ts';
import { AskingRunner } from './asking-runner.ts';
import type { FromWorker, ToWorker } from './messages.ts';

/**
 * In a worker: renders with these functions what the other side sends, one package at a time, until the other side is gone. The one
 * argument of the program is the id of the process that started it.
 */
export function serveWorker(functions: readonly KrmFunction[]): void {
  watchParent(Number(process.argv[2]));
  const catalog = new Catalog(functions);
  // A rendering that is no longer wanted ends with this process.
  const { signal } = new AbortController();
  const send = (message: FromWorker) => {
    process.send?.(message);
  };
  const external = new AskingRunner(send);
  const run = async (message: Extract<ToWorker, { readonly type: 'run' }>) => {
    try {
      const outcome = await runPipeline(message.input, {
        catalog,
        signal,
        external: message.external ? external : undefined,
        limits: message.limits,
        onEvent: (event) => send({ type: 'event', event }),
      });
      send({ type: 'done', outcome });
    } catch (error) {
      const code = isSluiceError(error) ? error.code : 'Internal';
      send({ type: 'failed', error: { code, message: messageOf(error) } });
    }
  };
  process.on('message', (message: ToWorker) => {
    if (message.type === 'run') void run(message);
    else external.take(message);
  });
  process.on('disconnect', () => process.exit());
  send({ type: 'ready' });
}

/**
 * Ends this process when the one that started it is gone. A function that computes without end never hears of it, so a thread looks,
 * twice a second.
 */
function watchParent(parent: number): void {
  const look = `setInterval(() => { if (process.ppid !== ${Math.trunc(parent)}) process.kill(process.pid, 'SIGKILL'); }, 500)`;
  // The room that V8 reserves for code would count as memory of this process.
  const resourceLimits = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, codeRangeSizeMb: 16 };
  new Worker(look, { eval: true, resourceLimits }).unref();
}
