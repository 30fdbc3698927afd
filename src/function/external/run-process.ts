import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { ExternalResult } from './external-runner.ts';

export interface ProcessRun {
  /** Its name in messages. */
  readonly title: string;
  /** Absolute path, or a name that is looked up in the PATH of `env`. */
  readonly file: string;
  readonly arguments: readonly string[];
  /** The whole environment: no variable of this process is added. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly input: string;
  /** Milliseconds. */
  readonly time: number;
  /** Bytes of standard output above which it is killed. */
  readonly outputBytes: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Ends child processes that left the process group. Runs after every end. */
  readonly endStrays?: () => Promise<void>;
}

const MAX_STDERR_CHARACTERS = 64 * 1024;

/**
 * Milliseconds for which output may stay open after the process and its group have ended: a process that left the group
 * may hold it open.
 */
const OUTPUT_TIMEOUT_MS = 5_000;

/**
 * Runs a program to its end, without a shell and in a process group of its own, which has ended when this settles. An exit code other
 * than 0 is a result; a process that a signal ended has the exit code that shells use. Rejects with Timeout, with LimitExceeded, with
 * Unavailable if it cannot be started, and with the reason of the signal.
 */
export function runProcess(run: ProcessRun): Promise<ExternalResult> {
  return new Promise((resolve, reject) => {
    if (run.signal.aborted) return reject(run.signal.reason);
    const child = spawn(run.file, run.arguments, { cwd: run.cwd, env: { ...run.env }, detached: true, stdio: 'pipe' });
    const cleanups: (() => void)[] = [];
    const cleanUp = () => {
      for (const action of cleanups.splice(0)) action();
    };
    let failure: { readonly reason: unknown } | undefined;
    const stop = (reason: unknown) => {
      failure ??= { reason };
      killGroup(child);
    };

    const onAbort = () => stop(run.signal.reason);
    run.signal.addEventListener('abort', onAbort, { once: true });
    cleanups.push(
      () => run.signal.removeEventListener('abort', onAbort),
      run.clock.schedule(run.time, () =>
        stop(new SluiceError('Timeout', `${run.title} did not end within ${run.time / 1000} s and was stopped`)),
      ),
    );

    const chunks: Buffer[] = [];
    let size = 0;
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (failure !== undefined) return;
      if (size <= run.outputBytes) chunks.push(chunk);
      else stop(new SluiceError('LimitExceeded', `${run.title} printed more than ${run.outputBytes} bytes`));
    });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      if (stderr.length < MAX_STDERR_CHARACTERS) stderr += chunk.slice(0, MAX_STDERR_CHARACTERS - stderr.length);
    });
    child.stdin.on('error', () => {
      // EPIPE: it ended without reading all of its input; its exit code has the reason.
    });
    child.stdin.end(run.input);

    child.on('error', (cause) => {
      if (child.pid !== undefined) return;
      cleanUp();
      reject(new SluiceError('Unavailable', `${run.title} cannot be started: ${cause.message}`, { cause }));
    });
    const strays = Promise.withResolvers<void>();
    child.on('exit', () => {
      // Its children would keep its output open.
      killGroup(child);
      cleanups.push(
        run.clock.schedule(OUTPUT_TIMEOUT_MS, () => {
          child.stdout.destroy();
          child.stderr.destroy();
        }),
      );
      (run.endStrays?.() ?? Promise.resolve()).then(strays.resolve, strays.reject);
    });
    child.on('close', (code, signal) => {
      cleanUp();
      strays.promise.then(() => {
        if (failure !== undefined) return reject(failure.reason);
        const exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
        resolve({ exitCode, stdout: Buffer.concat(chunks).toString('utf8'), stderr });
      }, reject);
    });
  });
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // ESRCH: the whole group has ended already, as intended.
  }
}
