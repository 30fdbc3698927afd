import type { Informer } from '../../src/controller/informer.ts';
import { specChanged } from '../../src/controller/predicates.ts';
import type { Source, SourceContext } from '../../src/controller/source.ts';
import { findCycle } from '../../src/foundation/find-cycle.ts';
import { type PackageVariant, packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';

const RING = 'package-variant-ring';

/**
 * Finds variants whose packages feed each other: each of their revisions would lead to the next one without end. Only the variants before
 * one in its chain are looked up, in an index. Variants of several namespaces that have registered the same Git repository are not seen as
 * a ring.
 */
export class VariantRings {
  #variants: Informer<PackageVariant> | undefined;
  #enqueue: SourceContext<ObjectKey>['enqueue'] | undefined;
  /** The members of rings, which a change of another member can set free. */
  readonly #members = new Map<string, ObjectKey>();

  readonly source: Source<ObjectKey> = {
    start: ({ informer, enqueue }) => {
      this.#enqueue = enqueue;
      this.#variants = informer(packageVariantKind);
      this.#variants.addIndex(RING, (variant) =>
        variant.metadata.deletionTimestamp === undefined ? [placeOf(variant, 'downstream')] : [],
      );
      const end = this.#variants.addHandler((event) => {
        if (event.type === 'delete' || (event.type === 'update' && specChanged(event)))
          for (const key of this.#members.values()) enqueue(key);
      });
      return () => {
        end();
        this.#variants = undefined;
        this.#enqueue = undefined;
        this.#members.clear();
      };
    },
  };

  /**
   * Returns the packages of the ring that a variant closes, as `repository/package`, beginning and ending with its downstream package;
   * undefined if it is in none. The other members examine themselves.
   */
  async ringOf(variant: Stored<PackageVariant>): Promise<readonly string[] | undefined> {
    const variants = this.#variants;
    const own = placeOf(variant, 'downstream');
    const upstreams = (place: string) =>
      place === own
        ? [placeOf(variant, 'upstream')]
        : (variants?.byIndex(RING, place) ?? []).map((one) => placeOf(one, 'upstream'));
    const ring = await findCycle(own, upstreams);
    if (ring === undefined) {
      this.forget(keyOf(variant));
      return undefined;
    }
    this.#members.set(keyText(keyOf(variant)), keyOf(variant));
    for (const member of ring.slice(1, -1).flatMap((place) => variants?.byIndex(RING, place) ?? []))
      if (!this.#members.has(keyText(keyOf(member)))) this.#enqueue?.(keyOf(member));
    return ring.map((place) => place.slice(place.indexOf('/') + 1));
  }

  forget(key: ObjectKey): void {
    this.#members.delete(keyText(key));
  }
}

function placeOf({ metadata, spec }: PackageVariant, side: 'upstream' | 'downstream'): string {
  const { repo, package: path } = spec[side];
  return `${metadata.namespace}/${repo}/${path}`;
}
