import { deepFreeze, type KubernetesObject, type ObjectKey, type Stored } from '../object/object.ts';
import type { RequestContext } from '../object/request-context.ts';
import type { Kind } from '../schema/kind.ts';
import { compileFieldSelector } from '../selector/field-selector.ts';
import type {
  DeleteOptions,
  ListOptions,
  ListResult,
  Selection,
  Storage,
  WatchEvent,
  WatchOptions,
} from './storage.ts';

/** Converts objects between the stored form and a displayed form; both directions keep the metadata. */
export interface Translation<Served extends KubernetesObject, Persisted extends KubernetesObject> {
  /** May return the very object, if it has the form already. */
  fromStored(object: Persisted): Served;
  toStored(object: Served): Persisted;
  /** Name of a selectable field in the stored form. Absent if all fields have the same names. */
  storedPath?(path: string): string;
}

/** The objects of another storage under another kind. There is one object, one version and one log entry for both. */
export class TranslatedStorage<Served extends KubernetesObject, Persisted extends KubernetesObject>
  implements Storage<Served>
{
  readonly kind: Kind<Served>;
  readonly subResources: readonly string[];
  readonly #objects: Storage<Persisted>;
  readonly #translation: Translation<Served, Persisted>;
  /** Converted objects, so that all readers share one conversion. */
  readonly #converted = new WeakMap<Stored<Persisted>, Stored<Served>>();

  constructor(kind: Kind<Served>, objects: Storage<Persisted>, translation: Translation<Served, Persisted>) {
    this.kind = kind;
    this.subResources = kind.strategy.hasStatus ? ['status'] : [];
    this.#objects = objects;
    this.#translation = translation;
  }

  async get(context: RequestContext, key: ObjectKey): Promise<Stored<Served>> {
    return this.#show(await this.#objects.get(context, key));
  }

  async list(context: RequestContext, options: ListOptions = {}): Promise<ListResult<Served>> {
    const page = await this.#objects.list(context, this.#selection(options));
    return { ...page, items: page.items.map((object) => this.#show(object)) };
  }

  watch(context: RequestContext, options: WatchOptions): AsyncIterable<WatchEvent<Served>> {
    return this.#events(this.#objects.watch(context, this.#selection(options)));
  }

  async create(context: RequestContext, object: Served): Promise<Stored<Served>> {
    return this.#show(await this.#objects.create(context, this.#translation.toStored(object)));
  }

  async update(context: RequestContext, object: Served): Promise<Stored<Served>> {
    return this.#show(await this.#objects.update(context, this.#translation.toStored(object)));
  }

  async updateSubResource(context: RequestContext, name: string, object: Served): Promise<Stored<Served>> {
    return this.#show(await this.#objects.updateSubResource(context, name, this.#translation.toStored(object)));
  }

  async delete(context: RequestContext, key: ObjectKey, options?: DeleteOptions): Promise<Stored<Served>> {
    return this.#show(await this.#objects.delete(context, key, options));
  }

  async *#events(events: AsyncIterable<WatchEvent<Persisted>>): AsyncGenerator<WatchEvent<Served>> {
    for await (const event of events)
      yield event.type === 'BOOKMARK' ? event : { type: event.type, object: this.#show(event.object) };
  }

  #selection<Options extends Selection>(options: Options): Options {
    const { fieldSelector } = options;
    const { storedPath } = this.#translation;
    if (fieldSelector === undefined || storedPath === undefined) return options;
    // The names of the kept form are not names of this one.
    compileFieldSelector(fieldSelector, this.kind);
    const requirements = fieldSelector.requirements.map((each) => ({ ...each, path: storedPath(each.path) }));
    return { ...options, fieldSelector: { requirements } };
  }

  #show(object: Stored<Persisted>): Stored<Served> {
    let converted = this.#converted.get(object);
    if (converted === undefined) {
      // The metadata are those of the stored object.
      converted = deepFreeze(this.#translation.fromStored(object)) as Stored<Served>;
      this.#converted.set(object, converted);
    }
    return converted;
  }
}
