import { retryConflicts } from '../../foundation/concurrency/retry-conflicts.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { type KubernetesObject, keyOf, type ObjectKey, type Stored } from '../../resource/object/object.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { MergePatch } from '../../resource/patch/merge-patch.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { compileSelection } from '../../resource/storage/selection.ts';
import type {
  AppliedConfiguration,
  ApplyOptions,
  DeleteOptions,
  ListOptions,
  ListResult,
  Storage,
  WatchEvent,
  WatchOptions,
} from '../../resource/storage/storage.ts';
import type { HttpCallOptions, HttpClient } from '../http-client.ts';
import { resumedWatch } from './resumed-watch.ts';

/**
 * The objects of one kind in a cluster: a kube-apiserver keeps them, and executes all rules of the contract itself. Requests are made as the
 * user of the client, whichever actor a context names: what a caller may do is judged before the storage is called.
 *
 * Not for package revisions: their server judges whether the caller has seen what is approved, and an update without a version gets one here.
 */
export class ClusterStorage<T extends KubernetesObject = KubernetesObject> implements Storage<T> {
  readonly kind: Kind<T>;
  readonly subResources: readonly string[];
  readonly #client: HttpClient;

  constructor(kind: Kind<T>, client: HttpClient) {
    const { hasStatus, delaysDeletion } = kind.strategy;
    this.kind = kind;
    this.subResources = [...(hasStatus ? ['status'] : []), ...(delaysDeletion === undefined ? [] : ['finalize'])];
    this.#client = client;
  }

  get(context: RequestContext, key: ObjectKey): Promise<Stored<T>> {
    return this.#client.get(this.kind, key, optionsOf(context));
  }

  async list(context: RequestContext, options: ListOptions = {}): Promise<ListResult<T>> {
    const { limit = 0, continue: token, ...selection } = options;
    compileSelection(selection, this.kind);
    const call = { ...selected(selection), ...optionsOf(context) };
    if (limit <= 0 && !token) return this.#client.list(this.kind, call);
    return this.#client.listPage(this.kind, { ...call, limit, continue: token });
  }

  watch(
    _context: RequestContext,
    { resourceVersion, signal, ...selection }: WatchOptions,
  ): AsyncIterable<WatchEvent<T>> {
    compileSelection(selection, this.kind);
    const call = { ...selected(selection), signal };
    return resumedWatch({
      ...{ resourceVersion, signal },
      clock: this.#client.clock,
      present: async () => (await this.#client.listPage(this.kind, { ...call, limit: 1 })).resourceVersion,
      watch: (from) => this.#client.watch(this.kind, { ...call, resourceVersion: from }),
    });
  }

  async create(context: RequestContext, object: T): Promise<Stored<T>> {
    // Kubernetes refuses a version instead of ignoring it.
    const { resourceVersion: _ignored, ...metadata } = object.metadata;
    return this.#client.create<T, T>(this.kind as Kind<T, T>, { ...object, metadata }, optionsOf(context));
  }

  update(context: RequestContext, object: T): Promise<Stored<T>> {
    return this.#replace(context, object, (next) => this.#client.update(this.kind, next, optionsOf(context)));
  }

  async updateSubResource(context: RequestContext, name: string, object: T): Promise<Stored<T>> {
    this.#expectSubResource(name);
    const { update } = this.#client.subResource(name);
    return this.#replace(context, object, (next) => update(this.kind, next, optionsOf(context)));
  }

  async patch(context: RequestContext, key: ObjectKey, patch: MergePatch, subResource?: string): Promise<Stored<T>> {
    if (subResource === undefined) return this.#client.patch(this.kind, key, patch, optionsOf(context));
    this.#expectSubResource(subResource);
    return this.#client.subResource(subResource).patch(this.kind, key, patch, optionsOf(context));
  }

  async apply(context: RequestContext, configuration: AppliedConfiguration, options: ApplyOptions): Promise<Stored<T>> {
    if (options.subResource !== undefined) this.#expectSubResource(options.subResource);
    return this.#client.apply(this.kind, configuration, { ...options, ...optionsOf(context) });
  }

  delete(context: RequestContext, key: ObjectKey, options: DeleteOptions = {}): Promise<Stored<T>> {
    const { propagationPolicy, uid, resourceVersion } = options;
    return this.#client.delete(this.kind, key, { propagationPolicy, uid, resourceVersion, ...optionsOf(context) });
  }

  /** Kubernetes requires a version for custom resources. Without one, this names the present version until no other writer is faster. */
  async #replace(context: RequestContext, object: T, put: (next: T) => Promise<Stored<T>>): Promise<Stored<T>> {
    const { metadata } = object;
    if (metadata.resourceVersion !== undefined) return put(object);
    const attempt = async (): Promise<Stored<T> | undefined> => {
      const { uid, resourceVersion } = (await this.get(context, keyOf(object))).metadata;
      if (metadata.uid !== undefined && metadata.uid !== uid) return undefined;
      return put({ ...object, metadata: { ...metadata, resourceVersion } });
    };
    const written = await retryConflicts(attempt, { signal: context.signal });
    if (written !== undefined) return written;
    throw new SluiceError(
      'Conflict',
      `cannot update ${this.kind.kind} ${JSON.stringify(metadata.name)}: it is not the object with the uid ${metadata.uid} any more; read it again`,
    );
  }

  #expectSubResource(name: string): void {
    if (!this.subResources.includes(name))
      throw new SluiceError('Unsupported', `${this.kind.plural} have no sub-resource ${JSON.stringify(name)}`);
  }
}

function optionsOf({ reason, signal, dryRun, warn }: RequestContext): HttpCallOptions {
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(signal === undefined ? {} : { signal }),
    ...{ dryRun, onWarning: warn },
  };
}

/** A selection as the client takes it, without what is undefined. */
function selected({ namespace, labelSelector, fieldSelector }: ListOptions) {
  return {
    ...(namespace === undefined ? {} : { namespace }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  };
}
