import { createPacer } from '../../foundation/concurrency/in-slices.ts';

/** Runs all steps without a pause. */
export function runAtOnce<Result>(steps: Generator<void, Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Runs all steps, and yields to the event loop between them. */
export async function runInSlices<Result>(steps: Generator<void, Result>): Promise<Result> {
  const pause = createPacer();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    const turn = pause();
    if (turn !== undefined) await turn;
  }
}
