import type { Clock } from '../../foundation/time/clock.ts';
import type { Credentials, Proof } from './cluster-access.ts';

/** Caches a proof for `lifetime` milliseconds; concurrent callers share one `make`. */
export function cacheCredentials(clock: Clock, lifetime: number, make: () => Promise<Proof>): Credentials {
  let current: Promise<Proof> | undefined;
  let until = 0;
  return {
    proof() {
      if (current === undefined || clock.now() >= until) {
        until = clock.now() + lifetime;
        const next = make();
        current = next;
        next.catch(() => {
          if (current === next) current = undefined;
        });
      }
      return current;
    },
    forget() {
      current = undefined;
    },
  };
}
