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
export interface Translation<Shown extends KubernetesObject, Kept extends KubernetesObject> {
  /** May return the very object, if it has the form already. */
  show(object: Kept): Shown;
  keep(object: Shown): Kept;
  /** Name of a selectable field in the stored form. Absent if all fields have the same names. */
  keptPath?(path: string): string;
}

/** The objects of another storage under another kind. There is one object, one version and one log entry for both. */
export class TranslatedStorage<Shown extends KubernetesObject, Kept extends KubernetesObject>
  implements Storage<Shown>
{
  readonly kind: Kind<Shown>;
  readonly subResources: readonly string[];
  readonly #objects: Storage<Kept>;
  readonly #translation: Translation<Shown, Kept>;
  /** Converted objects, so that all readers share one conversion. */
  readonly #shown = new WeakMap<Stored<Kept>, Stored<Shown>>();

  constructor(kind: Kind<Shown>, objects: Storage<Kept>, translation: Translation<Shown, Kept>) {
    this.kind = kind;
    this.subResources = kind.strategy.hasStatus ? ['status'] : [];
    this.#objects = objects;
    this.#translation = translation;
  }

  async get(context: RequestContext, key: ObjectKey): Promise<Stored<Shown>> {
    return this.#show(await this.#objects.get(context, key));
  }

  async list(context: RequestContext, options: ListOptions = {}): Promise<ListResult<Shown>> {
    const page = await this.#objects.list(context, this.#selection(options));
    return { ...page, items: page.items.map((object) => this.#show(object)) };
  }

  watch(context: RequestContext, options: WatchOptions): AsyncIterable<WatchEvent<Shown>> {
    return this.#events(this.#objects.watch(context, this.#selection(options)));
  }

  async create(context: RequestContext, object: Shown): Promise<Stored<Shown>> {
    return this.#show(await this.#objects.create(context, this.#translation.keep(object)));
  }

  async update(context: RequestContext, object: Shown): Promise<Stored<Shown>> {
    return this.#show(await this.#objects.update(context, this.#translation.keep(object)));
  }

  async updateSubResource(context: RequestContext, name: string, object: Shown): Promise<Stored<Shown>> {
    return this.#show(await this.#objects.updateSubResource(context, name, this.#translation.keep(object)));
  }

  async delete(context: RequestContext, key: ObjectKey, options?: DeleteOptions): Promise<Stored<Shown>> {
    return this.#show(await this.#objects.delete(context, key, options));
  }

  async *#events(events: AsyncIterable<WatchEvent<Kept>>): AsyncGenerator<WatchEvent<Shown>> {
    for await (const event of events)
      yield event.type === 'BOOKMARK' ? event : { type: event.type, object: this.#show(event.object) };
  }

  #selection<Options extends Selection>(options: Options): Options {
    const { fieldSelector } = options;
    const { keptPath } = this.#translation;
    if (fieldSelector === undefined || keptPath === undefined) return options;
    // The names of the kept form are not names of this one.
    compileFieldSelector(fieldSelector, this.kind);
    const requirements = fieldSelector.requirements.map((each) => ({ ...each, path: keptPath(each.path) }));
    return { ...options, fieldSelector: { requirements } };
  }

  #show(object: Stored<Kept>): Stored<Shown> {
    let shown = this.#shown.get(object);
    if (shown === undefined) {
      // The metadata are those of the stored object.
      shown = deepFreeze(this.#translation.show(object)) as Stored<Shown>;
      this.#shown.set(object, shown);
    }
    return shown;
  }
}
