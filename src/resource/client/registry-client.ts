import { retryConflicts } from '../../foundation/concurrency/retry-conflicts.ts';
import { SluiceError, unlessMissing } from '../../foundation/sluice-error.ts';
import { invalidObject, invalidValue } from '../object/invalid-object.ts';
import { DEFAULT_NAMESPACE, deepFreeze, type KubernetesObject, type ObjectKey, type Stored } from '../object/object.ts';
import type { Actor, EntryPoint, RequestContext } from '../object/request-context.ts';
import { applyMergePatch, type MergePatch } from '../patch/merge-patch.ts';
import type { Kind } from '../schema/kind.ts';
import type { KindIdentity } from '../schema/kind-identity.ts';
import { fieldSelector } from '../selector/field-selector.ts';
import { labelSelector } from '../selector/label-selector.ts';
import type { Registry } from '../storage/registry.ts';
import type { DeleteOptions, ListResult, Selection, WatchEvent } from '../storage/storage.ts';
import type { CallOptions, Client, SelectOptions, SubResourceClient, WatchCallOptions } from './client.ts';

/** The client of a registry in the same process. */
export class RegistryClient implements Client {
  readonly actor: Actor;
  readonly face: EntryPoint;
  readonly #registry: Registry;
  readonly #warn: RequestContext['warn'];

  /** `warn` is called with deviations from the request. */
  constructor(registry: Registry, actor: Actor, face: EntryPoint, warn?: (message: string) => void) {
    this.#registry = registry;
    this.actor = actor;
    this.face = face;
    this.#warn = warn;
  }

  as(actor: Actor, face: EntryPoint = this.face): Client {
    return new RegistryClient(this.#registry, actor, face, this.#warn);
  }

  async get<T extends KubernetesObject>(kind: Kind<T>, key: ObjectKey, options?: CallOptions): Promise<Stored<T>> {
    return deepFreeze(await this.#registry.storage(kind).get(this.#context(options), scoped(kind, key)));
  }

  find<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options?: CallOptions,
  ): Promise<Stored<T> | undefined> {
    return unlessMissing(this.get(kind, key, options));
  }

  async list<T extends KubernetesObject>(
    kind: Kind<T>,
    options: SelectOptions & CallOptions = {},
  ): Promise<ListResult<T>> {
    return deepFreeze(await this.#registry.storage(kind).list(this.#context(options), selectionOf(options)));
  }

  watch<T extends KubernetesObject>(kind: Kind<T>, options: WatchCallOptions): AsyncIterable<WatchEvent<T>> {
    const { resourceVersion, signal } = options;
    return this.#registry
      .storage(kind)
      .watch(this.#context(options), { ...selectionOf(options), resourceVersion, signal });
  }

  async create<T extends KubernetesObject, Input>(
    kind: Kind<T, Input>,
    object: NoInfer<Input>,
    options?: CallOptions,
  ): Promise<Stored<T>> {
    const complete = withScope(kind, kind.complete(object));
    return deepFreeze(await this.#registry.storage<T>(kind).create(this.#context(options), complete));
  }

  async update<T extends KubernetesObject>(kind: Kind<T>, object: T, options?: CallOptions): Promise<Stored<T>> {
    const complete = withScope(kind, kind.complete(object));
    return deepFreeze(await this.#registry.storage(kind).update(this.#context(options), complete));
  }

  patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    patch: MergePatch,
    options?: CallOptions,
  ): Promise<Stored<T>> {
    return this.#patch(kind, { key, patch, options }, (object) => this.update(kind, object, options));
  }

  updateStatus<T extends KubernetesObject>(kind: Kind<T>, object: T, options?: CallOptions): Promise<Stored<T>> {
    return this.subResource('status').update(kind, object, options);
  }

  subResource(name: string): SubResourceClient {
    const update = async <T extends KubernetesObject>(kind: Kind<T>, object: T, options?: CallOptions) => {
      const complete = withScope(kind, kind.parse(object, partOf(name)).object);
      return deepFreeze(await this.#registry.storage(kind).updateSubResource(this.#context(options), name, complete));
    };
    return {
      get: async (kind, key, parameters = {}, options) => {
        const found = this.#registry.storage(kind).readOnlySubResources?.find((one) => one.name === name);
        if (found === undefined)
          throw new SluiceError('Unsupported', `${kind.plural} have no sub-resource "${name}" that is only read`);
        return found.read(this.#context(options), scoped(kind, key), new URLSearchParams(parameters));
      },
      update,
      patch: (kind, key, patch, options) =>
        this.#patch(kind, { key, patch, options, subResource: name }, (object) => update(kind, object, options)),
    };
  }

  async delete<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options: DeleteOptions & CallOptions = {},
  ): Promise<Stored<T>> {
    const { uid, resourceVersion, propagationPolicy } = options;
    return deepFreeze(
      await this.#registry
        .storage(kind)
        .delete(this.#context(options), scoped(kind, key), { uid, resourceVersion, propagationPolicy }),
    );
  }

  async #patch<T extends KubernetesObject>(
    kind: Kind<T>,
    { key, patch, options, subResource }: PatchRequest,
    write: (object: T) => Promise<Stored<T>>,
  ): Promise<Stored<T>> {
    const storage = this.#registry.storage(kind);
    if (storage.patch !== undefined)
      return deepFreeze(await storage.patch(this.#context(options), scoped(kind, key), patch, subResource));
    const attempt = async () => {
      const old = await this.get(kind, key, options);
      const merged = kind.parse(applyMergePatch(old, patch), partOf(subResource)).object;
      if (merged.metadata.name !== old.metadata.name || merged.metadata.namespace !== old.metadata.namespace)
        throw new SluiceError('InvalidInput', 'a patch cannot change name or namespace');
      return write(storage.afterPatch?.(old, merged) ?? merged);
    };
    return hasVersion(patch) ? attempt() : retryConflicts(attempt, { signal: options?.signal });
  }

  #context(options: CallOptions = {}): RequestContext {
    const { reason, evidence, review, together, signal } = options;
    return {
      actor: this.actor,
      face: this.face,
      ...(reason === undefined ? {} : { reason }),
      ...(evidence === undefined ? {} : { evidence }),
      ...(review === undefined ? {} : { review }),
      ...(together === undefined ? {} : { together }),
      ...(signal === undefined ? {} : { signal }),
      ...(this.#warn === undefined ? {} : { warn: this.#warn }),
    };
  }
}

interface PatchRequest {
  readonly key: ObjectKey;
  readonly patch: MergePatch;
  readonly options: CallOptions | undefined;
  /** Absent for the object itself. */
  readonly subResource?: string;
}

/** What of an object a write to a sub-resource changes. */
function partOf(subResource: string | undefined): 'status' | undefined {
  return subResource === 'status' ? 'status' : undefined;
}

/** True if a patch contains the version of the object that it was created for. */
function hasVersion(patch: MergePatch): boolean {
  const { metadata } = patch;
  return typeof metadata === 'object' && metadata !== null && 'resourceVersion' in metadata;
}

/** The key with the namespace that the kind requires. */
function scoped(kind: KindIdentity, key: ObjectKey): ObjectKey {
  return kind.namespaced ? { namespace: key.namespace || DEFAULT_NAMESPACE, name: key.name } : { name: key.name };
}

function withScope<T extends KubernetesObject>(kind: KindIdentity, object: T): T {
  if (kind.namespaced)
    return { ...object, metadata: { ...object.metadata, namespace: object.metadata.namespace || DEFAULT_NAMESPACE } };
  if (object.metadata.namespace === undefined) return object;
  throw invalidObject(`${kind.kind} ${JSON.stringify(object.metadata.name)}`, [
    invalidValue(['metadata', 'namespace'], object.metadata.namespace, `${kind.plural} have no namespace`),
  ]);
}

function selectionOf(options: SelectOptions): Selection {
  const { namespace, labelSelector: labels, fieldSelector: fields } = options;
  return {
    namespace,
    labelSelector:
      labels === undefined || (typeof labels === 'object' && 'requirements' in labels) ? labels : labelSelector(labels),
    fieldSelector: typeof fields === 'string' ? fieldSelector(fields) : fields,
  };
}
