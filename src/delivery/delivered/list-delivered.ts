import type { Client } from '../../resource/client/client.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../resource/kinds/sluice/delivery/package-delivery.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import { type DeliveredPackage, TARGET_LABEL, targetLabelValue } from './delivered-package.ts';
import { DeliveredPackages } from './delivered-packages.ts';

/** Lists the objects of one target. For commands; a process that keeps running follows an informer. */
export async function listDelivered(
  client: Client,
  { metadata: { name, namespace = DEFAULT_NAMESPACE } }: Pick<DeliveryTarget, 'metadata'>,
): Promise<DeliveredPackages> {
  const labelSelector = `${TARGET_LABEL}=${targetLabelValue(name)}`;
  const { items } = await client.list(packageDeliveryKind, { namespace, labelSelector });
  return DeliveredPackages.from(items);
}

/** The packages of a target: from its status if an earlier version listed them there, from what follows an informer, else from a list. */
export async function deliveredOf(
  client: Client,
  followed: DeliveredPackages | undefined,
  target: Pick<DeliveryTarget, 'metadata' | 'status'>,
): Promise<readonly DeliveredPackage[]> {
  // A server of an earlier version has no objects to list.
  if (target.status?.packages !== undefined) return target.status.packages;
  return (followed ?? (await listDelivered(client, target))).of(target);
}
