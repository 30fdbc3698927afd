import { type DeliveredPackage, packageDeliveryOf } from '../../src/delivery/delivered/delivered-package.ts';
import { DeliveredPackages } from '../../src/delivery/delivered/delivered-packages.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import type { PackageDelivery } from '../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import type { Stored } from '../../src/resource/object/object.ts';

const TIME = '2030-01-01T00:00:00Z';

/** A target with a uid, as a storage returns it. */
export function storedTarget<T extends DeliveryTarget>(target: T): T & Stored<DeliveryTarget> {
  const { namespace = 'default', name } = target.metadata;
  const stored = { uid: `${namespace}/${name}`, resourceVersion: '1', creationTimestamp: TIME };
  return { ...target, metadata: { ...target.metadata, namespace, ...stored } };
}

/** The object of a package as a storage returns it. */
export function storedDelivery(
  target: Stored<DeliveryTarget>,
  one: DeliveredPackage,
  resourceVersion = '1',
): Stored<PackageDelivery> {
  const object = packageDeliveryOf(target, one, one.package, TIME);
  const metadata = { ...object.metadata, uid: object.metadata.name, resourceVersion, creationTimestamp: TIME };
  return { ...object, metadata };
}

/** What a reader knows of the packages of targets. */
export function deliveredBy(
  ...lists: readonly (readonly [Stored<DeliveryTarget>, readonly DeliveredPackage[]])[]
): DeliveredPackages {
  return DeliveredPackages.from(
    lists.flatMap(([target, packages]) => packages.map((one) => storedDelivery(target, one))),
  );
}
