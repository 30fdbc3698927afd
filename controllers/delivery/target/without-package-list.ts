import { packagesDigest } from '../../../src/delivery/delivered/delivered-package.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import {
  type DeliveryTarget,
  deliveryTargetKind,
} from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { keyOf, type Stored } from '../../../src/resource/object/object.ts';
import type { DeliveredWriter } from '../branch/write-delivered.ts';
import { writeTargetStatus } from './write-target-status.ts';

/**
 * Makes the objects of the packages that an earlier version listed in the status of a target, and then removes the list. Until then the list
 * counts, and no object, so that it makes no difference if the process ends in between. Returns the target as it is then.
 */
export async function withoutPackageList(
  client: Client,
  writer: DeliveredWriter,
  target: Stored<DeliveryTarget>,
  signal: AbortSignal,
): Promise<Stored<DeliveryTarget>> {
  const listed = target.status?.packages;
  if (listed === undefined) return target;
  await writer.write(target, listed, signal);
  await writeTargetStatus(client, target, ({ status }) => {
    if (status?.packages === undefined) return undefined;
    const { packages: _, ...rest } = status;
    return { ...rest, packageCount: listed.length, packagesDigest: packagesDigest(listed) };
  });
  return (await client.find(deliveryTargetKind, keyOf(target))) ?? target;
}
