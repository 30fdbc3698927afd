import type { Informer } from '../../src/controller/informer.ts';
import type { InformerEvent } from '../../src/controller/informer-store.ts';
import { specChanged } from '../../src/controller/predicates.ts';
import type { Source, SourceContext } from '../../src/controller/source.ts';
import { findCycle } from '../../src/foundation/find-cycle.ts';
import { type PackageVariant, packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { type Repository, repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import {
  type KubernetesObject,
  keyOf,
  keyText,
  type ObjectKey,
  type Stored,
} from '../../src/resource/object/object.ts';
import type { PolicyScope } from '../proposal/pending-revisions.ts';

const RING = 'package-variant-ring';

/**
 * Finds variants whose packages feed each other: each of their revisions would lead to the next one without end. Only the variants before
 * one in its chain are looked up, in an index. A package in Git is one package, in whichever namespaces its repository is registered.
 */
export class VariantRings {
  readonly #sharing: NonNullable<PolicyScope['sharing']>;
  #variants: Informer<PackageVariant> | undefined;
  #repositories: Informer<Repository> | undefined;
  #enqueue: SourceContext<ObjectKey>['enqueue'] | undefined;
  /** The members of rings, which a change of another member can set free. */
  readonly #members = new Map<string, ObjectKey>();

  constructor(sharing: NonNullable<PolicyScope['sharing']>) {
    this.#sharing = sharing;
  }

  readonly source: Source<ObjectKey> = {
    start: ({ informer, enqueue }) => {
      this.#enqueue = enqueue;
      this.#repositories = informer(repositoryKind);
      this.#variants = informer(packageVariantKind);
      this.#variants.addIndex(RING, (variant) =>
        variant.metadata.deletionTimestamp === undefined ? [placeText(placeOf(variant, 'downstream'))] : [],
      );
      const wake = <T extends KubernetesObject>(event: InformerEvent<T>) => {
        if (event.type === 'delete' || (event.type === 'update' && specChanged(event)))
          for (const key of this.#members.values()) enqueue(key);
      };
      const ends = [this.#variants.addHandler(wake), this.#repositories.addHandler(wake)];
      return () => {
        for (const end of ends) end();
        this.#variants = undefined;
        this.#repositories = undefined;
        this.#enqueue = undefined;
        this.#members.clear();
      };
    },
  };

  /**
   * Returns the packages of the ring that a variant closes, as `repository/package`, and for other namespaces with these, beginning and ending with
   * its downstream package; undefined if it is in none. The other members examine themselves.
   */
  async ringOf(variant: Stored<PackageVariant>): Promise<readonly string[] | undefined> {
    const place = placeOf(variant, 'downstream');
    const [own, ...copies] = this.#samePlaces(place);
    const upstreamOf = (one: PackageVariant) => {
      const upstream = placeText(placeOf(one, 'upstream'));
      return copies.includes(upstream) ? own : upstream;
    };
    const upstreams = (node: string) => (node === own ? [variant] : this.#variantsOf(node)).map(upstreamOf);
    const ring = await findCycle(own, upstreams);
    if (ring === undefined) {
      this.forget(keyOf(variant));
      return undefined;
    }
    this.#members.set(keyText(keyOf(variant)), keyOf(variant));
    for (const member of ring.slice(1, -1).flatMap((node) => this.#variantsOf(node)))
      if (!this.#members.has(keyText(keyOf(member)))) this.#enqueue?.(keyOf(member));
    return ring.map((node) => {
      const { namespace, repo, path } = parsePlace(node);
      return `${repo}/${path}${namespace === place.namespace ? '' : ` of namespace ${namespace}`}`;
    });
  }

  forget(key: ObjectKey): void {
    this.#members.delete(keyText(key));
  }

  /** The variants whose downstream package is the one at a place. */
  #variantsOf(node: string): Stored<PackageVariant>[] {
    return this.#samePlaces(parsePlace(node)).flatMap((text) => this.#variants?.byIndex(RING, text) ?? []);
  }

  /** A place, and those of the same package in the repositories of other namespaces. */
  #samePlaces(place: Place): [string, ...string[]] {
    const key = { namespace: place.namespace, name: place.repo };
    const directory = this.#repositories?.get(key)?.spec.git?.directory;
    const path = directory === undefined ? undefined : inDirectory(directory, place.path);
    const others = path === undefined ? [] : this.#sharing(key);
    return [
      placeText(place),
      ...others.flatMap(({ namespace = '', name }) => {
        const prefix = inDirectory(this.#repositories?.get({ namespace, name })?.spec.git?.directory ?? '/', '');
        if (path?.startsWith(prefix) !== true) return [];
        return [placeText({ namespace, repo: name, path: path.slice(prefix.length) })];
      }),
    ];
  }
}

/** A package in a Repository. */
interface Place {
  readonly namespace: string;
  readonly repo: string;
  readonly path: string;
}

function placeOf({ metadata: { namespace = '' }, spec }: PackageVariant, side: 'upstream' | 'downstream'): Place {
  const { repo, package: path } = spec[side];
  return { namespace, repo, path };
}

/** Names of objects have no slash. */
function placeText({ namespace, repo, path }: Place): string {
  return `${namespace}/${repo}/${path}`;
}

function parsePlace(text: string): Place {
  const [namespace = '', repo = '', ...path] = text.split('/');
  return { namespace, repo, path: path.join('/') };
}

function inDirectory(directory: string, path: string): string {
  return directory === '/' ? path : `${directory}/${path}`;
}
