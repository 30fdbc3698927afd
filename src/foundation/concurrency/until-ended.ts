import { SluiceError } from '../sluice-error.ts';

/**
 * Resolves like `work`, or rejects with Timeout as soon as `signal` aborts, so that the resources of a request are released even while
 * the work still waits, for instance for another system that does not respond. Work does not begin for a request that has ended.
 */
export async function untilEnded<Value>(
  signal: AbortSignal | undefined,
  work: () => Value | Promise<Value>,
): Promise<Value> {
  if (signal === undefined) return work();
  return new Promise((resolve, reject) => {
    const end = () => reject(new SluiceError('Timeout', 'the request ended before it was decided'));
    if (signal.aborted) {
      end();
      return;
    }
    signal.addEventListener('abort', end, { once: true });
    (async () => work())()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', end));
  });
}
