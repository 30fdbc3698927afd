import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Filter } from './filter.ts';

/** Rejects with Timeout when the time of a request is up, and aborts what still runs for it. A watch has only to begin in time. */
export function limitTime(clock: Clock, timeoutMs: number): Filter {
  return (request, next) =>
    new Promise((resolve, reject) => {
      const cancel = clock.schedule(timeoutMs, () => {
        request.aborted.abort();
        reject(new SluiceError('Timeout', 'Timeout: request did not complete within the allotted timeout'));
      });
      next().then(resolve, reject).finally(cancel);
    });
}
