import type { ControllerOptions } from '../../src/controller/controller.ts';
import type { Source } from '../../src/controller/source.ts';
import type { Clock } from '../../src/foundation/clock.ts';
import { mapLimited } from '../../src/foundation/map-limited.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type Event, eventKind, lastSeen } from '../../src/resource/kinds/event.ts';
import { keyOf, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';

export interface EventExpiryOptions {
  readonly client: Client;
  readonly clock: Clock;
  /** Milliseconds after which an event that did not happen again goes. Default one hour. */
  readonly lifetime?: number;
  /** How many events are kept at most. Default 50,000. */
  readonly limit?: number;
}

/** Milliseconds between two looks at all events. */
const INTERVAL = 60_000;
/** Deletions that wait for the storage together, so that they share its syncs. */
const AT_ONCE = 64;
/** There is one thing to do, whatever wakes it. */
const SWEEP: ObjectKey = { name: 'events' };

/** Deletes events that are old, and the oldest where there are too many. */
export function eventExpiryController(options: EventExpiryOptions): ControllerOptions {
  const { clock, lifetime = 3_600_000, limit = 50_000 } = options;
  const client = options.client.as({ name: 'controller:event-expiry' }, 'controller');
  let kept: () => Stored<Event>[] = () => [];

  const source: Source<ObjectKey> = {
    start({ informer, enqueue }) {
      const events = informer(eventKind);
      kept = () => events.list();
      enqueue(SWEEP);
      let count = 0;
      return events.addHandler(({ type }) => {
        if (type === 'add') count += 1;
        else if (type === 'delete') count -= 1;
        if (type === 'add' && count > limit) enqueue(SWEEP);
      });
    },
  };

  return {
    name: 'event-expiry',
    sources: [source],
    async reconcile() {
      const now = clock.now();
      const events = kept()
        .map((event) => ({ event, seen: timeOf(event, now) }))
        .sort((a, b) => a.seen - b.seen);
      const firstYoung = events.findIndex(({ seen }) => seen + lifetime > now);
      const expired = firstYoung < 0 ? events.length : firstYoung;
      // Some more than needed, so that the next event does not lead to another look at all of them.
      const surplus = events.length - expired > limit ? events.length - Math.floor(limit * 0.9) : 0;
      const old = events.slice(0, Math.max(expired, surplus));
      await mapLimited(old, AT_ONCE, ({ event }) => remove(event));
      return { requeueAfter: INTERVAL, reason: 'the next look at old events' };
    },
  };

  async function remove({ metadata }: Stored<Event>): Promise<void> {
    const { uid, resourceVersion } = metadata;
    try {
      await client.delete(eventKind, keyOf({ metadata }), { uid, resourceVersion });
    } catch (error) {
      // Gone already, or it has just happened again.
      if (!isSluiceError(error, 'NotFound') && !isSluiceError(error, 'Conflict')) throw error;
    }
  }
}

/** When an event was last seen, in milliseconds. Clients write that; what cannot be true does not make it last. */
function timeOf(event: Stored<Event>, now: number): number {
  const created = Date.parse(event.metadata.creationTimestamp);
  const told = Date.parse(lastSeen(event) ?? '');
  return told > created && told <= now ? told : created;
}
