import { setImmediate } from 'node:timers/promises';

/** So long, in milliseconds, the event loop is held up before others get their turn. */
const SLICE_MS = 4;

/** Runs all steps without a pause. */
export function runAtOnce<Result>(steps: Generator<void, Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Runs all steps, and lets others have their turn between them. */
export async function runInSlices<Result>(steps: Generator<void, Result>): Promise<Result> {
  let end = performance.now() + SLICE_MS;
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() < end) continue;
    await setImmediate();
    end = performance.now() + SLICE_MS;
  }
}
