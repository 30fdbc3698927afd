import { setTimeout as delay } from 'node:timers/promises';

const WAIT_MS = 3_600_000;
const STEP_MS = 500;

/** Waits until something holds. Rejects with its name after an hour. */
export async function until(what: string, isDone: () => Promise<boolean>, everyMs = STEP_MS): Promise<void> {
  const end = performance.now() + WAIT_MS;
  while (!(await isDone())) {
    if (performance.now() > end) throw new Error(`not within an hour: ${what}`);
    await delay(everyMs);
  }
}

export async function forEachConcurrently<Item>(
  items: readonly Item[],
  concurrency: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = items[Symbol.iterator]();
  const worker = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}
