/** Reports when the user wants the command to end. */
export interface StopSignal {
  readonly signal: AbortSignal;
  /** Ends it from within, with a reason. */
  stop(reason: string): void;
  release(): void;
}

const EXIT_AT_ONCE = 130;

/** npm passes on a Ctrl-C that the terminal has sent to all processes already; both are one wish. Milliseconds. */
const SAME_WISH = 500;

/** The first SIGINT, SIGTERM or SIGHUP aborts the signal, a second one ends the process at once. */
export function untilStopped(onFirst: () => void): StopSignal {
  const controller = new AbortController();
  let first = Number.POSITIVE_INFINITY;
  const handle = () => {
    const now = performance.now();
    if (now - first > SAME_WISH) process.exit(EXIT_AT_ONCE);
    first = Math.min(first, now);
    if (controller.signal.aborted) return;
    onFirst();
    controller.abort('stopped');
  };
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const name of names) process.on(name, handle);
  // The timers of the controllers do not keep the process alive; this one does.
  const alive = setInterval(() => undefined, 1_000_000_000);
  return {
    signal: controller.signal,
    stop: (reason) => controller.abort(reason),
    release() {
      clearInterval(alive);
      for (const name of names) process.off(name, handle);
    },
  };
}

/** Resolves when a signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
