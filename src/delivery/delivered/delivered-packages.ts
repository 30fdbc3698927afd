import type { Informer } from '../../controller/informer.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { PackageDelivery } from '../../resource/kinds/sluice/delivery/package-delivery.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type Stored } from '../../resource/object/object.ts';
import { isOlder } from '../../resource/object/resource-version.ts';
import { compareText } from '../path-rules.ts';
import { packageKey } from '../selection/select-revisions.ts';
import { type DeliveredPackage, deliveredIn, isOwnedBy, packageDeliveryName } from './delivered-package.ts';

type TargetOf = Pick<DeliveryTarget, 'metadata' | 'status'>;

/** The objects for one name of a target, by `packageKey`. */
interface Members {
  readonly byPackage: Map<string, Stored<PackageDelivery>>;
  /** The last list, with the uid of the target that it is of; undefined after a change. */
  list: { readonly uid: string | undefined; readonly packages: readonly DeliveredPackage[] } | undefined;
}

/** Milliseconds until an informer must show what was written. */
const SHOWN_TIMEOUT_MS = 10_000;

/**
 * The packages that targets deliver, by target. A change costs the same for any number of packages. A target with the packages in its status,
 * where earlier versions listed them, delivers exactly these: its objects do not count before Sluice has removed the list.
 */
export class DeliveredPackages {
  readonly #byTarget = new Map<string, Members>();
  readonly #listeners = new Set<(object: Stored<PackageDelivery>, isDeleted: boolean) => void>();

  static from(objects: Iterable<Stored<PackageDelivery>>): DeliveredPackages {
    const packages = new DeliveredPackages();
    for (const object of objects) packages.#put(object);
    return packages;
  }

  /** Follows an informer until the returned function is called. */
  follow(informer: Pick<Informer<PackageDelivery>, 'addHandler'>): () => void {
    return informer.addHandler((event) => {
      if (event.type === 'delete') this.#remove(event.object);
      else this.#put(event.object);
      for (const listener of this.#listeners) listener(event.object, event.type === 'delete');
    });
  }

  /** The packages of a target, in the order of `packageKey`. */
  of({ metadata, status }: TargetOf): readonly DeliveredPackage[] {
    if (status?.packages !== undefined) return status.packages;
    const members = this.#byTarget.get(targetKey(metadata.namespace, metadata.name));
    if (members === undefined) return [];
    if (members.list?.uid === metadata.uid && members.list !== undefined) return members.list.packages;
    const packages = [...members.byPackage]
      .sort(([a], [b]) => compareText(a, b))
      .flatMap(([, object]) => (isOwnedBy(object, metadata.uid) ? (deliveredIn(object) ?? []) : []));
    members.list = { uid: metadata.uid, packages };
    return packages;
  }

  /** One package of a target. The cost does not depend on the number of packages. */
  find(
    { metadata, status }: TargetOf,
    name: { readonly repository: string; readonly package: string },
  ): DeliveredPackage | undefined {
    const key = packageKey(name);
    if (status?.packages !== undefined) return listedIn(status.packages).get(key);
    const object = this.#byTarget.get(targetKey(metadata.namespace, metadata.name))?.byPackage.get(key);
    return object !== undefined && isOwnedBy(object, metadata.uid) ? deliveredIn(object) : undefined;
  }

  /** The highest revision of each package that the targets of a namespace deliver, by `packageKey`. The cost is that of all packages. */
  highestIn(namespace: string): ReadonlyMap<string, number> {
    const highest = new Map<string, number>();
    const prefix = targetKey(namespace, '');
    for (const [key, { byPackage }] of this.#byTarget)
      if (key.startsWith(prefix))
        for (const [name, { status }] of byPackage)
          if (status !== undefined) highest.set(name, Math.max(highest.get(name) ?? 0, status.revision));
    return highest;
  }

  /** The objects with the name of a target, also those of an earlier target with this name, by `packageKey`. */
  objectsOf({ metadata }: Pick<TargetOf, 'metadata'>): ReadonlyMap<string, Stored<PackageDelivery>> {
    return this.#byTarget.get(targetKey(metadata.namespace, metadata.name))?.byPackage ?? new Map();
  }

  /**
   * Resolves when reads show these writes, so that the next reconciliation of the same target does not decide by what was before them.
   * `removed` are the objects as they were. Rejects with Timeout if the watch is too far behind.
   */
  async shows(
    written: readonly Stored<PackageDelivery>[],
    removed: readonly Stored<PackageDelivery>[],
    clock: Clock,
  ): Promise<void> {
    const pending = new Map<string, string | undefined>();
    for (const object of written)
      if (!this.#isShown(object)) pending.set(keyText(keyOf(object)), object.metadata.resourceVersion);
    for (const object of removed)
      if (this.#at(object)?.metadata.uid === object.metadata.uid) pending.set(keyText(keyOf(object)), undefined);
    if (pending.size === 0) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const listener = (object: Stored<PackageDelivery>, isDeleted: boolean) => {
      const key = keyText(keyOf(object));
      if (!pending.has(key)) return;
      const version = pending.get(key);
      const isShown = version === undefined ? isDeleted : !isOlder(object.metadata.resourceVersion, version);
      if (isShown) pending.delete(key);
      if (pending.size === 0) resolve();
    };
    const cancel = clock.schedule(SHOWN_TIMEOUT_MS, () =>
      reject(
        new SluiceError(
          'Timeout',
          `cannot record what is delivered: the watch does not show ${pending.size} packagedeliveries after ${SHOWN_TIMEOUT_MS / 1000} s; it is tried again`,
        ),
      ),
    );
    this.#listeners.add(listener);
    try {
      await promise;
    } finally {
      this.#listeners.delete(listener);
      cancel();
    }
  }

  #at({ metadata, spec }: PackageDelivery): Stored<PackageDelivery> | undefined {
    return this.#byTarget.get(targetKey(metadata.namespace, spec.target))?.byPackage.get(packageKey(spec));
  }

  #isShown(object: Stored<PackageDelivery>): boolean {
    const present = this.#at(object);
    return present !== undefined && !isOlder(present.metadata.resourceVersion, object.metadata.resourceVersion);
  }

  #put(object: Stored<PackageDelivery>): void {
    const { metadata, spec } = object;
    // Two objects of one package would contradict each other.
    if (metadata.name !== packageDeliveryName(spec.target, spec)) return;
    const key = targetKey(metadata.namespace, spec.target);
    const members = this.#byTarget.get(key) ?? { byPackage: new Map(), list: undefined };
    this.#byTarget.set(key, members);
    members.byPackage.set(packageKey(spec), object);
    members.list = undefined;
  }

  #remove({ metadata, spec }: Stored<PackageDelivery>): void {
    const key = targetKey(metadata.namespace, spec.target);
    const members = this.#byTarget.get(key);
    if (members?.byPackage.get(packageKey(spec))?.metadata.name !== metadata.name) return;
    members.byPackage.delete(packageKey(spec));
    members.list = undefined;
    if (members.byPackage.size === 0) this.#byTarget.delete(key);
  }
}

type ListInStatus = NonNullable<NonNullable<DeliveryTarget['status']>['packages']>;
/** The objects of readers are frozen, and replaced when they change. */
const indexes = new WeakMap<ListInStatus, ReadonlyMap<string, DeliveredPackage>>();

function listedIn(packages: ListInStatus): ReadonlyMap<string, DeliveredPackage> {
  const index = indexes.get(packages) ?? new Map(packages.map((one) => [packageKey(one), one]));
  indexes.set(packages, index);
  return index;
}

function targetKey(namespace: string | undefined, name: string): string {
  return keyText({ namespace: namespace ?? DEFAULT_NAMESPACE, name });
}
