import type { Clock } from './clock.ts';

export interface BackoffOptions {
  /** Milliseconds after the first failure. */
  readonly base: number;
  readonly max: number;
  /** A number from 0 to below 1. */
  readonly random: () => number;
}

/** Milliseconds to wait after a number of failures in a row: doubling, limited, and spread over its upper half. */
export function backoffDelay(failures: number, options: BackoffOptions): number {
  const full = Math.min(options.max, options.base * 2 ** Math.min(Math.max(0, failures - 1), 1000));
  return full / 2 + (full / 2) * options.random();
}

/** Resolves after a time, or at once when the signal aborts. Never rejects. */
export function sleep(clock: Clock, milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.schedule(milliseconds, end);
    signal.addEventListener('abort', end);
  });
}
