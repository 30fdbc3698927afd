import type { InformerEvent } from '../../src/controller/informer-store.ts';
import type { Source } from '../../src/controller/source.ts';
import { sleep } from '../../src/foundation/time/backoff.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import {
  type PackageDelivery,
  packageDeliveryKind,
} from '../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';

export interface DeliveredSourceOptions<Request> {
  readonly clock: Clock;
  /** Milliseconds without a change of a target after which it wakes. 0: each change wakes at once. Default 250. */
  readonly quietMs?: number;
  /** Events for which it is false are passed over. */
  readonly predicate?: (event: InformerEvent<PackageDelivery>) => boolean;
  /** The requests that follow from changed packages of a target. */
  readonly map: (target: ObjectKey) => Iterable<Request>;
}

/** Milliseconds after which a target wakes although its packages still change. */
const MAX_WAIT_MS = 5_000;

/**
 * Wakes for the targets whose delivered packages change, once for many changes: a delivery of thousands of packages writes as many objects,
 * and each reconciliation reads all of them.
 */
export function deliveredSource<Request = ObjectKey>(options: DeliveredSourceOptions<Request>): Source<Request> {
  const { clock, quietMs = 250, predicate, map } = options;
  return {
    start({ informer, enqueue, track }) {
      /** Changes of the targets that are about to wake. */
      const changes = new Map<string, number>();
      const wake = (target: ObjectKey) => {
        for (const request of map(target)) enqueue(request);
      };
      const wakeAfterChanges = async (target: ObjectKey, signal: AbortSignal) => {
        const key = keyText(target);
        for (let waited = 0; waited < MAX_WAIT_MS; waited += quietMs) {
          const before = changes.get(key);
          await sleep(clock, quietMs, signal);
          if (changes.get(key) === before) break;
        }
        changes.delete(key);
        if (!signal.aborted) wake(target);
      };
      return informer(packageDeliveryKind).addHandler((event) => {
        if (predicate?.(event) === false) return;
        const { spec, metadata } = event.object;
        const target = { namespace: metadata.namespace, name: spec.target };
        if (quietMs === 0) return wake(target);
        const key = keyText(target);
        const count = changes.get(key);
        changes.set(key, (count ?? 0) + 1);
        if (count === undefined) track((signal) => wakeAfterChanges(target, signal));
      });
    },
  };
}
