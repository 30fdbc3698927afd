import { setImmediate } from 'node:timers/promises';

/** So long, in milliseconds, the event loop is held up before others get their turn. */
const SLICE_MS = 4;

/**
 * Calls a synchronous `action` for each item in order. For file operations that take some microseconds, handing each to another
 * thread would take several times as long.
 */
export async function inSlices<Item>(items: Iterable<Item>, action: (item: Item) => void): Promise<void> {
  let end = performance.now() + SLICE_MS;
  for (const item of items) {
    action(item);
    if (performance.now() < end) continue;
    await setImmediate();
    end = performance.now() + SLICE_MS;
  }
}

/** For loops that wait for something in each step: `await pause()` lets others have their turn if the last one was some milliseconds ago. */
export function pacer(): () => Promise<void> {
  let end = performance.now() + SLICE_MS;
  return async () => {
    if (performance.now() < end) return;
    await setImmediate();
    end = performance.now() + SLICE_MS;
  };
}
