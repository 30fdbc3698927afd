import { posix } from 'node:path';
import type { Clock } from '../../foundation/clock.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
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

/** Milliseconds for reading and for writing the package, when no function runs. */
const OWN_TIME = 60_000;
/** Milliseconds for the whole pipeline, external functions included: a worker that one package holds renders no other. */
const WHOLE_TIME = 15 * 60_000;

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

  let stopWatch = () => {};
  const watch = () => {
    stopWatch();
    const time = current === undefined ? OWN_TIME : limits.time;
    stopWatch = clock.schedule(time, () => {
      fail(`did not end within ${time / 1000} s and was stopped`);
      worker.kill();
    });
  };

  const stopWhole = clock.schedule(WHOLE_TIME, () => {
    fail(`was stopped: all functions together took longer than ${WHOLE_TIME / 60_000} minutes`);
    worker.kill();
  });

  const over = new AbortController();
  const calls = new Set<Promise<void>>();
  const answer = (question: number, call: Promise<unknown>) => {
    const told = call.then(
      (value) => worker.send({ type: 'answer', question, answer: value as never }),
      (error: unknown) => worker.send({ type: 'noAnswer', question, error: plainError(error) }),
    );
    calls.add(told);
    void told.then(() => calls.delete(told));
    return told;
  };

  worker.listen((message: FromWorker) => {
    switch (message.type) {
      case 'event': {
        const { type, step } = message.event;
        current = type === 'started' ? step : undefined;
        if (type === 'finished') finished.push(step);
        watch();
        return onEvent?.(message.event);
      }
      case 'refusal':
        answer(message.question, external?.refusal(message.call) ?? notHere());
        return;
      case 'external':
        // The runner of external functions has bounds of its own, which count from when the function really starts.
        stopWatch();
        void answer(message.question, external?.run(message.call, over.signal) ?? notHere()).then(watch);
        return;
      case 'done':
        return settled.resolve(message.outcome);
      case 'failed':
        // Such as a finding that cannot be sent.
        if (current !== undefined) return fail(`broke down: ${message.error.message}`);
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

  watch();
  worker.send({ type: 'run', input, limits, external: external !== undefined });
  try {
    return await settled.promise;
  } finally {
    worker.listen(undefined);
    signal.removeEventListener('abort', onAbort);
    over.abort(new SluiceError('Unavailable', 'the rendering that the function belongs to has ended'));
    await Promise.all(calls);
    stopWatch();
    stopWhole();
  }
}

function notHere(): Promise<never> {
  return Promise.reject(new SluiceError('Unavailable', 'functions outside of this process are switched off here'));
}

function plainError(error: unknown): PlainError {
  return { code: isSluiceError(error) ? error.code : 'Internal', message: messageOf(error) };
}

/** What is told of a rendering that its worker could not tell. */
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
