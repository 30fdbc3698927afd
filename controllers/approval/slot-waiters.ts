import type { Source } from '../../src/controller/source.ts';
import { sleep } from '../../src/foundation/time/backoff.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';

/** Milliseconds in which the events of a namespace are collected: a delivery of a wave causes hundreds. */
const QUIET_MS = 200;

/** True if a policy permits one more package in flight for a revision. */
export type HasSlot = (key: ObjectKey, policy: string) => boolean;

/**
 * The revisions that wait because as many packages are in flight as a policy permits. They wake when a delivery, a target or a publication of
 * the namespace changes and the policy has a place again.
 */
export class SlotWaiters {
  /** By namespace, policy and key of the revision. */
  readonly #waiting = new Map<string, Map<string, Map<string, ObjectKey>>>();

  /** Notes the policies that a revision waits for; none ends its waiting. */
  note(key: ObjectKey, policies: readonly string[]): void {
    const { namespace = '' } = key;
    const ofNamespace = this.#waiting.get(namespace) ?? new Map<string, Map<string, ObjectKey>>();
    for (const [policy, keys] of ofNamespace) {
      keys.delete(keyText(key));
      if (keys.size === 0) ofNamespace.delete(policy);
    }
    for (const policy of policies)
      ofNamespace.set(policy, (ofNamespace.get(policy) ?? new Map<string, ObjectKey>()).set(keyText(key), key));
    if (ofNamespace.size === 0) this.#waiting.delete(namespace);
    else this.#waiting.set(namespace, ofNamespace);
  }

  /** Wakes those that wait for a policy with a free place, which is computed once for each policy. */
  source(clock: Clock, hasSlot: HasSlot, quietMs = QUIET_MS): Source<ObjectKey> {
    return {
      start: ({ informer, enqueue, track }) => {
        const changed = new Set<string>();
        const wake = (namespace = '') => {
          if (changed.has(namespace) || !this.#waiting.has(namespace)) return;
          changed.add(namespace);
          track(async (signal) => {
            await sleep(clock, quietMs, signal);
            changed.delete(namespace);
            if (signal.aborted) return;
            for (const [policy, keys] of this.#waiting.get(namespace) ?? []) {
              const [one] = keys.values();
              if (one !== undefined && hasSlot(one, policy)) for (const key of keys.values()) enqueue(key);
            }
          });
        };
        const ends = [
          informer(packageDeliveryKind).addHandler(({ object }) => wake(object.metadata.namespace)),
          informer(deliveryTargetKind).addHandler(({ object }) => wake(object.metadata.namespace)),
          informer(packageRevisionKind).addHandler((event) => {
            const { metadata, spec } = event.object;
            const hasMoved = event.type !== 'update' || event.old.spec.lifecycle !== spec.lifecycle;
            if (hasMoved) wake(metadata.namespace);
          }),
        ];
        return () => {
          for (const end of ends) end();
        };
      },
    };
  }
}
