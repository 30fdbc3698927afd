import { SluiceError } from '../../src/foundation/sluice-error.ts';
import type { Kind } from '../../src/resource/kind.ts';
import type { KubernetesObject, ObjectKey, Stored } from '../../src/resource/object.ts';
import type { RequestContext } from '../../src/resource/request-context.ts';
import {
  ALL_VERBS,
  type DeleteOptions,
  type ListOptions,
  type ListResult,
  type Storage,
  type Verb,
  type WatchEvent,
  type WatchOptions,
} from '../../src/resource/storage.ts';

export interface VersionViewOptions {
  /** The kind in the version that is shown. */
  readonly kind: Kind;
  /** The objects of all versions. */
  readonly objects: Storage;
  /** The apiVersion that is written into objects. */
  readonly storedAs: string;
  /** True once the kind is to go: nothing is created any more. */
  readonly isClosing: boolean;
}

/** The objects of a user's kind in one of its versions, which differ in nothing but their name and schema. */
export class VersionView implements Storage {
  readonly kind: Kind;
  readonly subResources: readonly string[];
  readonly verbs: readonly Verb[];
  readonly #objects: Storage;
  readonly #storedAs: string;
  /** What was shown of an object, so that all who see it share it. */
  readonly #shown = new WeakMap<Stored, Stored>();

  constructor({ kind, objects, storedAs, isClosing }: VersionViewOptions) {
    this.kind = kind;
    this.subResources = kind.hasStatus ? ['status'] : [];
    this.verbs = isClosing ? ALL_VERBS.filter((verb) => verb !== 'create') : ALL_VERBS;
    this.#objects = objects;
    this.#storedAs = storedAs;
  }

  async get(context: RequestContext, key: ObjectKey): Promise<Stored> {
    return this.#show(await this.#objects.get(context, key));
  }

  async list(context: RequestContext, options?: ListOptions): Promise<ListResult<KubernetesObject>> {
    const page = await this.#objects.list(context, options);
    return { ...page, items: page.items.map((object) => this.#show(object)) };
  }

  async *watch(context: RequestContext, options: WatchOptions): AsyncGenerator<WatchEvent<KubernetesObject>> {
    for await (const event of this.#objects.watch(context, options)) {
      if (event.type === 'BOOKMARK') yield event;
      else yield { type: event.type, object: this.#show(event.object) };
    }
  }

  async create(context: RequestContext, object: KubernetesObject): Promise<Stored> {
    if (!this.verbs.includes('create'))
      throw new SluiceError('Unsupported', 'create not allowed while custom resource definition is terminating');
    return this.#show(await this.#objects.create(context, this.#toStore(object)));
  }

  async update(context: RequestContext, object: KubernetesObject): Promise<Stored> {
    return this.#show(await this.#objects.update(context, this.#toStore(object)));
  }

  async updateSubResource(context: RequestContext, name: string, object: KubernetesObject): Promise<Stored> {
    return this.#show(await this.#objects.updateSubResource(context, name, this.#toStore(object)));
  }

  async delete(context: RequestContext, key: ObjectKey, options?: DeleteOptions): Promise<Stored> {
    return this.#show(await this.#objects.delete(context, key, options));
  }

  #toStore(object: KubernetesObject): KubernetesObject {
    return object.apiVersion === this.#storedAs ? object : { ...object, apiVersion: this.#storedAs };
  }

  #show(object: Stored): Stored {
    const { apiVersion } = this.kind;
    if (object.apiVersion === apiVersion) return object;
    let shown = this.#shown.get(object);
    if (shown === undefined) {
      shown = Object.freeze({ ...object, apiVersion });
      this.#shown.set(object, shown);
    }
    return shown;
  }
}
