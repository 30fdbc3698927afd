/** Time as a dependency, so that tests decide what time it is and no deadline depends on the wall clock alone. */
export interface Clock {
  /** Wall-clock time, for display and storage. Milliseconds since the epoch. */
  now(): number;
  /**
   * Milliseconds of running time since an arbitrary start, which no correction of the wall clock changes: for pauses, ages and limits within one
   * process.
   */
  monotonic(): number;
  /** Runs `action` once after `delay` milliseconds; the returned function cancels it. */
  schedule(delay: number, action: () => void): () => void;
}

/** The machine's own clock. Timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule(delay, action) {
    // setTimeout takes at most 2^31-1 ms; a longer wait is re-armed by the level-triggered caller.
    const timer = setTimeout(action, Math.min(Math.max(0, delay), 2_147_483_647));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** RFC 3339 in UTC with seconds, the form that Kubernetes objects use. */
export function timestamp(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}
