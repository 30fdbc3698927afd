import { posix } from 'node:path';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { ExternalRunner } from '../external/external-runner.ts';
import type { FunctionLimits, PipelineEvent, PipelineInput, PipelineOutcome, PipelineStep } from '../model/pipeline.ts';
import type { FromWorker, PlainError } from './messages.ts';
import type { WorkerProcess } from './worker-process.ts';

export interface WorkerRun {
  readonly input: PipelineInput;
  readonly limits: FunctionLimits;
  readonly external: ExternalRunner | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onEvent: ((event: PipelineEvent) => void) | undefined;
}

/** For reading and for writing the package, when no function runs. */
const IO_TIMEOUT_MS = 60_000;
/** For the whole pipeline, external functions included: a worker renders one package at a time. */
const PIPELINE_TIMEOUT_MS = 15 * 60_000;

/**
 * Renders a package in a worker that is ready. A function that takes too long, and one that the worker does not survive, is the last step of
 * a failed outcome, and the worker is killed. Rejects with the reason of the signal; then the worker is killed too. No external
 * function runs any longer when this settles.
 */
export async function runInWorker(worker: WorkerProcess, run: WorkerRun): Promise<PipelineOutcome> {
  const { input, limits, external, clock, signal, onEvent } = run;
  signal.throwIfAborted();
  const settled = Promise.withResolvers<PipelineOutcome>();
  const finished: PipelineStep[] = [];
  let current: PipelineStep | undefined;
  const fail = (why: string) => settled.resolve(failedOutcome(input, finished, current, why));

  let stopTimer = () => {};
  const startTimer = () => {
    stopTimer();
    const time = current === undefined ? IO_TIMEOUT_MS : limits.time;
    stopTimer = clock.schedule(time, () => {
      fail(`did not end within ${time / 1000} s and was stopped`);
      worker.kill();
    });
  };

  const stopPipelineTimer = clock.schedule(PIPELINE_TIMEOUT_MS, () => {
    fail(`was stopped: all functions together took longer than ${PIPELINE_TIMEOUT_MS / 60_000} minutes`);
    worker.kill();
  });

  const ended = new AbortController();
  const calls = new Set<Promise<void>>();
  const answer = (id: number, call: Promise<unknown>) => {
    const sent = call.then(
      (value) => worker.send({ type: 'answer', id, answer: value as never }),
      (error: unknown) => worker.send({ type: 'error', id, error: plainError(error) }),
    );
    calls.add(sent);
    void sent.then(() => calls.delete(sent));
    return sent;
  };

  worker.listen((message: FromWorker) => {
    switch (message.type) {
      case 'event': {
        const { type, step } = message.event;
        current = type === 'started' ? step : undefined;
        if (type === 'finished') finished.push(step);
        startTimer();
        return onEvent?.(message.event);
      }
      case 'refusal':
        answer(message.id, external?.refusal(message.call) ?? disabled());
        return;
      case 'external':
        // The runner of external functions has its own limits, which start when the function really starts.
        stopTimer();
        void answer(message.id, external?.run(message.call, ended.signal) ?? disabled()).then(startTimer);
        return;
      case 'done':
        return settled.resolve(message.outcome);
      case 'failed':
        // Such as a finding that cannot be sent.
        if (current !== undefined) return fail(`crashed: ${message.error.message}`);
        return settled.reject(new SluiceError(message.error.code, message.error.message));
      case 'ready':
    }
  });
  const onAbort = () => {
    settled.reject(signal.reason);
    worker.kill();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  void worker.ended.then(fail);

  startTimer();
  worker.send({ type: 'run', input, limits, external: external !== undefined });
  try {
    return await settled.promise;
  } finally {
    worker.listen(undefined);
    signal.removeEventListener('abort', onAbort);
    ended.abort(new SluiceError('Unavailable', 'the rendering that the function belongs to has ended'));
    await Promise.all(calls);
    stopTimer();
    stopPipelineTimer();
  }
}

function disabled(): Promise<never> {
  return Promise.reject(new SluiceError('Unavailable', 'external functions are disabled'));
}

function plainError(error: unknown): PlainError {
  return { code: isSluiceError(error) ? error.code : 'Internal', message: messageOf(error) };
}

/** The outcome of a rendering whose worker was killed or failed. */
function failedOutcome(
  { only }: PipelineInput,
  finished: readonly PipelineStep[],
  current: PipelineStep | undefined,
  why: string,
): PipelineOutcome {
  const outcome = { edits: new Map(), notes: [] };
  if (current === undefined) return { ...outcome, steps: finished, failure: `rendering ${why}` };
  const { packagePath, list, result } = current;
  const executionError = `it ${why}`;
  const before = finished.filter((step) => step.packagePath === packagePath && step.list === list);
  const place = `${posix.join(packagePath, 'Kptfile')}: pipeline.${list}[${before.length}], `;
  const name = JSON.stringify(result.name ?? result.image ?? result.exec ?? '');
  return {
    ...outcome,
    steps: [...finished, { ...current, result: { ...result, exitCode: 1, executionError } }],
    failure: `${only === undefined ? place : ''}function ${name}: ${executionError}`,
  };
}
