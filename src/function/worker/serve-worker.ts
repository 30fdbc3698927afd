import { Worker } from 'node:worker_threads';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { Catalog } from '../catalog/catalog.ts';
import type { ExternalCall, ExternalResult, ExternalRunner } from '../external/external-runner.ts';
import type { KrmFunction } from '../model/function.ts';
import { runPipeline } from '../pipeline/run-pipeline.ts';
import type { FromWorker, ToWorker } from './messages.ts';

/**
 * In a worker: renders packages from the parent process with these functions, one at a time, until the parent has ended. The one
 * argument of the program is the id of the parent process.
 */
export function serveWorker(functions: readonly KrmFunction[]): void {
  watchParent(Number(process.argv[2]));
  const catalog = new Catalog(functions);
  // A cancelled rendering ends with this process.
  const { signal } = new AbortController();
  const send = (message: FromWorker) => {
    process.send?.(message);
  };
  const external = new ParentRunner(send);
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
    else external.receive(message);
  });
  process.on('disconnect', () => process.exit());
  send({ type: 'ready' });
}

/**
 * Ends this process when its parent has ended. A function in an endless loop blocks the event loop, so a thread checks twice a
 * second.
 */
function watchParent(parent: number): void {
  const look = `setInterval(() => { if (process.ppid !== ${Math.trunc(parent)}) process.kill(process.pid, 'SIGKILL'); }, 500)`;
  // The memory that V8 reserves for code would count as memory of this process.
  const resourceLimits = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, codeRangeSizeMb: 16 };
  new Worker(look, { eval: true, resourceLimits }).unref();
}

/** Passes calls of external functions to the process that started this worker. */
class ParentRunner implements ExternalRunner {
  readonly #send: (message: FromWorker) => void;
  readonly #pending = new Map<number, PromiseWithResolvers<never>>();
  #lastCall = 0;

  constructor(send: (message: FromWorker) => void) {
    this.#send = send;
  }

  refusal({ image, exec }: Omit<ExternalCall, 'input'>): Promise<string | undefined> {
    const call = { ...(image === undefined ? {} : { image }), ...(exec === undefined ? {} : { exec }) };
    return this.#request((id) => ({ type: 'refusal', id, call }));
  }

  /** Ignores the signal: the parent process ends the function when it ends this worker. */
  run(call: ExternalCall): Promise<ExternalResult> {
    return this.#request((id) => ({ type: 'external', id, call }));
  }

  /** Settles the call that an answer of the parent process belongs to. */
  receive(message: Extract<ToWorker, { readonly id: number }>): void {
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (message.type === 'answer') pending?.resolve(message.answer as never);
    else pending?.reject(new SluiceError(message.error.code, message.error.message));
  }

  #request<Answer>(message: (id: number) => FromWorker): Promise<Answer> {
    this.#lastCall += 1;
    const pending = Promise.withResolvers<never>();
    this.#pending.set(this.#lastCall, pending);
    this.#send(message(this.#lastCall));
    return pending.promise;
  }
}
