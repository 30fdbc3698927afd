import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import {
  type DeliveryTarget,
  deliveryTargetKind,
} from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { keyOf, type Stored } from '../../../src/resource/object/object.ts';

/** Attempts against concurrent writers of the status; each controller writes it once for each of its changes. */
const MAX_ATTEMPTS = 10;

/**
 * Writes the part of a target's status that a controller owns. Several controllers write it, and a write of one does not wake the others:
 * so after a lost race the change is made again to the present status. `change` returns the new status, or undefined for none. Nothing is
 * written to a target that was replaced, or whose spec changed, since that wakes the caller again. Returns the status before the write;
 * undefined if nothing was written.
 */
export async function writeTargetStatus(
  client: Client,
  target: Stored<DeliveryTarget>,
  change: (target: Stored<DeliveryTarget>) => DeliveryTarget['status'],
): Promise<Stored<DeliveryTarget> | undefined> {
  let current: Stored<DeliveryTarget> | undefined = target;
  for (let attempt = 1; ; attempt += 1) {
    const status = change(current);
    if (status === undefined) return undefined;
    try {
      await client.updateStatus(deliveryTargetKind, { ...current, status });
      return current;
    } catch (error) {
      if (isSluiceError(error, 'NotFound')) return undefined;
      if (!isSluiceError(error, 'Conflict') || attempt >= MAX_ATTEMPTS) throw error;
    }
    current = await client.find(deliveryTargetKind, keyOf(target));
    const { uid, generation } = target.metadata;
    if (current === undefined || current.metadata.uid !== uid || current.metadata.generation !== generation)
      return undefined;
  }
}
