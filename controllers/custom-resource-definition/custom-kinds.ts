import { mapLimited } from '../../src/foundation/concurrency/map-limited.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { customKind } from '../../src/resource/kinds/apiextensions/custom-kind.ts';
import type { CustomResourceDefinition } from '../../src/resource/kinds/apiextensions/custom-resource-definition.ts';
import { isConditionTrue } from '../../src/resource/object/condition.ts';
import { apiVersionOf, keyOf, type Stored } from '../../src/resource/object/object.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import { isDeletionDelayed } from '../../src/resource/storage/memory/object-rules.ts';
import type { ObjectStorage } from '../../src/resource/storage/memory/object-storage.ts';
import type { Registry } from '../../src/resource/storage/registry.ts';
import { VersionView } from './version-view.ts';

export interface CustomKindsOptions {
  readonly registry: Registry;
  /** Opens the durable storage of a kind, with the objects that it has. */
  readonly openStorage: (kind: Kind) => ObjectStorage;
  readonly closeStorage: (kind: Kind) => void;
}

/** A definition while its kind is served. */
interface Served {
  readonly spec: CustomResourceDefinition['spec'];
  readonly isClosing: boolean;
  readonly objects: ObjectStorage;
  readonly views: readonly VersionView[];
}

/** Replaces the version in the storage key, so that objects keep their place when versions are added and removed. */
const ANY_VERSION = '*';
/** Deletions in flight at once, so that they share the syncs of the storage. */
const MAX_CONCURRENT_DELETIONS = 64;

/** Serves user-defined kinds. All versions of a kind have the same objects. */
export class CustomKinds {
  readonly #options: CustomKindsOptions;
  readonly #served = new Map<string, Served>();

  constructor(options: CustomKindsOptions) {
    this.#options = options;
  }

  /** Serves the kinds that were served when the process ended, so that clients never find them missing. */
  restore(definitions: Iterable<Stored<CustomResourceDefinition>>): void {
    for (const definition of definitions) {
      if (!isConditionTrue(definition.status?.conditions, 'Established')) continue;
      try {
        this.serve(definition);
      } catch (error) {
        // Stored by another version of Sluice; the controller retries and reports why.
        if (!isSluiceError(error)) throw error;
      }
    }
  }

  isServed(name: string): boolean {
    return this.#served.has(name);
  }

  /** Returns all kinds except those of the definition itself. */
  kindsExcept(name: string): Kind[] {
    const own = new Set(this.#served.get(name)?.views.map((view) => view.kind));
    return this.#options.registry.kinds().filter((kind) => !own.has(kind));
  }

  /**
   * Serves the kind of a definition, whose names must be free, as it is defined now: in each served version. A definition that is
   * being deleted accepts no new objects.
   */
  serve(definition: CustomResourceDefinition): void {
    const { metadata, spec } = definition;
    const known = this.#served.get(metadata.name);
    const isClosing = metadata.deletionTimestamp !== undefined;
    if (known !== undefined && known.isClosing === isClosing && sameValue(known.spec, spec)) return;
    const kinds = spec.versions.filter(({ served }) => served).map(({ name }) => customKind(definition, name));
    const version = spec.versions.find(({ storage }) => storage)?.name ?? '';
    const stored = storedKind(customKind(definition, version), kinds);
    const { registry, openStorage } = this.#options;
    // The same storage object continues, since other requests may be about to write to it.
    const objects = known?.objects ?? openStorage(stored);
    objects.redefine(stored);
    for (const { kind } of known?.views ?? []) registry.unregister(kind);
    const storedAs = apiVersionOf({ group: spec.group, version });
    const views = kinds.map((kind) => new VersionView({ kind, objects, storedAs, isClosing }));
    for (const view of views) registry.register(view);
    this.#served.set(metadata.name, { spec, isClosing, objects, views });
  }

  /** Requests the deletion of all objects of a definition; returns how many remain. */
  async removeObjects(name: string, context: RequestContext): Promise<number> {
    const { objects } = this.#served.get(name) ?? {};
    if (objects === undefined) return 0;
    let left = 0;
    const { items } = await objects.list(context);
    await mapLimited(items, MAX_CONCURRENT_DELETIONS, async (object) => {
      try {
        const { uid } = object.metadata;
        const last = await objects.delete(context, keyOf(object), { uid });
        if (isDeletionDelayed(objects.kind, last)) left += 1;
      } catch (error) {
        // Another client deleted it first.
        if (!isSluiceError(error, 'NotFound') && !isSluiceError(error, 'Conflict')) throw error;
      }
    });
    const remaining = await objects.list(context);
    return left + remaining.items.filter(({ metadata }) => metadata.deletionTimestamp === undefined).length;
  }

  /** Stops serving the kind. */
  withdraw(name: string): void {
    const served = this.#served.get(name);
    if (served === undefined) return;
    this.#served.delete(name);
    for (const { kind } of served.views) this.#options.registry.unregister(kind);
    this.#options.closeStorage(served.objects.kind);
  }
}

/** The kind under which objects are stored; selectors may use the fields of every version. */
function storedKind(kind: Kind, versions: readonly Kind[]): Kind {
  const fields = [kind, ...versions].flatMap(({ selectableFields }) => selectableFields);
  return {
    ...kind,
    version: ANY_VERSION,
    apiVersion: apiVersionOf({ group: kind.group, version: ANY_VERSION }),
    selectableFields: [...new Map(fields.map((field) => [field.path, field])).values()],
  };
}
