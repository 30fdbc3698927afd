import type { InformerEvent } from '../../src/controller/informer-store.ts';
import { specChanged } from '../../src/controller/predicates.ts';
import type { Source, SourceContext } from '../../src/controller/source.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { type PackageVariant, packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { type KubernetesObject, keyOf, keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import { PackageRings, type PackageRingsOptions, placeText } from '../package-rings.ts';
import { ConsumerIndex } from '../revision/resolvers/dependency/consumer-index.ts';

/** Finds variants that are part of a ring of packages, and wakes them once it may be open. */
export class VariantRings {
  readonly #rings: PackageRings;
  #enqueue: SourceContext<ObjectKey>['enqueue'] | undefined;
  /** The members of rings, which a change of another member can set free. */
  readonly #members = new Map<string, ObjectKey>();
  /** The same by the packages of their rings. */
  readonly #byPlace = new ConsumerIndex();

  constructor(options: PackageRingsOptions) {
    this.#rings = new PackageRings(options);
  }

  readonly source: Source<ObjectKey> = {
    start: (context) => {
      const { informer, enqueue } = context;
      this.#enqueue = enqueue;
      const wake = <T extends KubernetesObject>(event: InformerEvent<T>) => {
        if (event.type === 'delete' || (event.type === 'update' && specChanged(event)))
          for (const key of this.#members.values()) enqueue(key);
      };
      const ends = [
        this.#rings.source.start(context),
        informer(packageVariantKind).addHandler(wake),
        informer(repositoryKind).addHandler(wake),
        // A publication may require another package no longer.
        informer(packageRevisionKind).addHandler(({ object: { metadata, spec } }) => {
          const place = { namespace: metadata.namespace ?? '', repo: spec.repository, path: spec.packageName };
          for (const key of this.#byPlace.of(placeText(place))) enqueue(key);
        }),
      ];
      return () => {
        for (const end of ends) end();
        this.#enqueue = undefined;
        for (const key of this.#members.values()) this.forget(key);
      };
    },
  };

  /** Returns the ring that a variant closes, as a text; undefined if it is in none. The other members examine themselves. */
  async ringOf(variant: PackageVariant): Promise<string | undefined> {
    const key = keyOf(variant);
    const ring = await this.#rings.ofVariant(variant);
    if (ring === undefined) {
      this.forget(key);
      return undefined;
    }
    this.#members.set(keyText(key), key);
    this.#byPlace.record(key, [...new Set(ring.places)]);
    for (const member of ring.places.slice(1, -1).flatMap((place) => this.#rings.variantsOf(place)))
      if (!this.#members.has(keyText(keyOf(member)))) this.#enqueue?.(keyOf(member));
    return ring.text;
  }

  forget(key: ObjectKey): void {
    this.#members.delete(keyText(key));
    this.#byPlace.forget(keyText(key));
  }
}
