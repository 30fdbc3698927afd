import { setImmediate } from 'node:timers/promises';

/**
 * The one way to yield: work that never waits for I/O uses it to keep the event loop free for timers, signals and requests. A
 * direct `setImmediate` elsewhere waits for an event that arrives within one turn, and does not yield.
 */

/** Milliseconds for which a loop may block the event loop. */
const SLICE_MS = 4;

/** Lets timers, I/O and other callbacks run before the caller continues. */
export function yieldToEventLoop(): Promise<void> {
  return setImmediate();
}

/** Yields until all pending input is handled: ready callbacks first, then data in the sockets. */
export async function handleReceived(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/**
 * For loops whose steps are called elsewhere: the returned function yields if the last pause was some milliseconds ago. It returns
 * undefined otherwise, so that a loop of a million steps need not await each of them.
 */
export function createPacer(): () => Promise<void> | undefined {
  let end = performance.now() + SLICE_MS;
  return () => {
    if (performance.now() < end) return undefined;
    return setImmediate().then(() => {
      end = performance.now() + SLICE_MS;
    });
  };
}

/** The items for which a synchronous `isWanted` is true, as `inSlices`. */
export async function filterInSlices<Item>(items: Iterable<Item>, isWanted: (item: Item) => boolean): Promise<Item[]> {
  const wanted: Item[] = [];
  await inSlices(items, (item) => {
    if (isWanted(item)) wanted.push(item);
  });
  return wanted;
}

/**
 * Calls a synchronous `action` for each item in order. For file operations that take some microseconds, handing each to another
 * thread would take several times as long.
 */
export async function inSlices<Item>(items: Iterable<Item>, action: (item: Item) => void): Promise<void> {
  const pause = createPacer();
  for (const item of items) {
    action(item);
    const turn = pause();
    if (turn !== undefined) await turn;
  }
}
