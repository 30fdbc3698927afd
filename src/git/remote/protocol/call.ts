import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import type { GitRemote } from '../../git-repository.ts';

/** One operation at a remote, with all its requests. */
export interface Call {
  readonly remote: GitRemote;
  /** Aborts, with the SluiceError that is to be thrown, on timeout, or when the caller cancels. */
  readonly signal: AbortSignal;
  /** Remaining milliseconds. */
  remaining(): number;
  /** Waits for a promise that does not observe the signal. Throws the reason of the signal when it aborts. */
  race<Result>(work: Promise<Result>): Promise<Result>;
  /** Waits some milliseconds, or until the signal aborts, whose reason it throws. */
  pause(milliseconds: number): Promise<void>;
}

interface CallLimits {
  readonly clock: Clock;
  readonly remote: GitRemote;
  /** The job, in words. */
  readonly name: string;
  /** Milliseconds for all of it. */
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
}

/** Runs an operation, with which all that it starts has to end. Throws Timeout, and Unavailable if the caller cancelled. */
export async function withinCall<Result>(limits: CallLimits, job: (call: Call) => Promise<Result>): Promise<Result> {
  const { clock, remote, name, timeout, signal } = limits;
  const what = `${name} at ${remote.url}`;
  const end = new AbortController();
  const until = clock.monotonic() + timeout;
  const cancelTimer = clock.schedule(timeout, () =>
    end.abort(new SluiceError('Timeout', `${what} did not end within ${timeout / 1000} s`)),
  );
  const giveUp = () => end.abort(new SluiceError('Unavailable', `${what} was cancelled`));
  signal?.addEventListener('abort', giveUp, { once: true });
  if (signal?.aborted === true) giveUp();
  const race = <Value>(work: Promise<Value>) => raceWith(work, end.signal);
  try {
    return await job({
      remote,
      signal: end.signal,
      remaining: () => until - clock.monotonic(),
      race,
      async pause(milliseconds) {
        let cancel = () => {};
        const over = new Promise<void>((resolve) => {
          cancel = clock.schedule(milliseconds, resolve);
        });
        await race(over).finally(() => cancel());
      },
    });
  } finally {
    cancelTimer();
    signal?.removeEventListener('abort', giveUp);
  }
}

async function raceWith<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason as Error);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
