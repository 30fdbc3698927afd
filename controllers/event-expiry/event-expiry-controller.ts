import type { ControllerOptions } from '../../src/controller/controller.ts';
import type { Source } from '../../src/controller/source.ts';
import { mapLimited } from '../../src/foundation/concurrency/map-limited.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type Event, eventKind, lastSeen } from '../../src/resource/kinds/core/event.ts';
import { keyOf, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';

export interface EventExpiryOptions {
  readonly client: Client;
  readonly clock: Clock;
  /** Milliseconds after which an event that did not recur is deleted. Default one hour. */
  readonly lifetime?: number;
  /** Number of events that are kept. Default 50,000. */
  readonly limit?: number;
}

/** Interval between two passes over all events. */
const INTERVAL_MS = 60_000;
/** Deletions in flight at once, so that they share the syncs of the storage. */
const MAX_CONCURRENT_DELETIONS = 64;
/** Every wake-up leads to the same pass, so the queue has one key. */
const SWEEP: ObjectKey = { name: 'events' };

/** Deletes expired events, and the oldest ones beyond the limit. */
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
      // Deletes some more than needed, so that the next event does not lead to another pass.
      const surplus = events.length - expired > limit ? events.length - Math.floor(limit * 0.9) : 0;
      const old = events.slice(0, Math.max(expired, surplus));
      await mapLimited(old, MAX_CONCURRENT_DELETIONS, ({ event }) => remove(event));
      return { requeueAfter: INTERVAL_MS, reason: 'the next pass over old events' };
    },
  };

  async function remove({ metadata }: Stored<Event>): Promise<void> {
    const { uid, resourceVersion } = metadata;
    try {
      await client.delete(eventKind, keyOf({ metadata }), { uid, resourceVersion });
    } catch (error) {
      // Already deleted, or it has just recurred.
      if (!isSluiceError(error, 'NotFound') && !isSluiceError(error, 'Conflict')) throw error;
    }
  }
}

/**
 * Returns the time of the last occurrence of an event, in milliseconds since the epoch. Clients write the time, so an
 * impossible one is ignored.
 */
function timeOf(event: Stored<Event>, now: number): number {
  const created = Date.parse(event.metadata.creationTimestamp);
  const reported = Date.parse(lastSeen(event) ?? '');
  return reported > created && reported <= now ? reported : created;
}
