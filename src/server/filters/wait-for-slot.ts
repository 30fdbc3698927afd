import type { User } from '../authentication/user.ts';
import { type InFlight, laneOf } from '../limits/in-flight.ts';
import type { Filter } from './filter.ts';

/** Waits in the fair queue of the user for one of the slots of the lane, and releases it after the response. */
export function waitForSlot(inFlight: InFlight, hasPriority: (sender: User) => boolean): Filter {
  return async ({ info, sender, user, aborted }, next) => {
    const lane = laneOf(info.verb, hasPriority(sender));
    const release = await inFlight.acquire(lane, user.name, aborted.signal);
    try {
      return await next();
    } finally {
      release();
    }
  };
}
