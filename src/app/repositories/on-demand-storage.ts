import { isSluiceError } from '../../foundation/sluice-error.ts';
import { DEFAULT_NAMESPACE, type KubernetesObject, type ObjectKey, type Stored } from '../../resource/object/object.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type {
  DeleteOptions,
  ListOptions,
  ListResult,
  ReadOnlySubResource,
  Storage,
  WatchEvent,
  WatchOptions,
} from '../../resource/storage/storage.ts';

/** Repositories, by their ids, that are opened when a request needs them. */
export interface RepositoriesOnDemand {
  /** Opens one, if it is not open. NotFound if it is not registered. */
  open(repository: string): Promise<void>;
  /** Opens all that can be opened. */
  openAll(): Promise<void>;
  /** Reads the remote of one that is open again. */
  refresh(repository: string): Promise<void>;
  /** Ids of the registered repositories of a name, in any namespace. */
  named(name: string): Promise<readonly string[]>;
}

/**
 * A storage of objects in repositories, for a process that opens repositories only for the requests that need them: the API of a data
 * folder without a running server. The names of the objects begin with that of their repository.
 */
export class OnDemandStorage<T extends KubernetesObject> implements Storage<T> {
  readonly kind: Storage<T>['kind'];
  readonly subResources: readonly string[];
  readonly readOnlySubResources: readonly ReadOnlySubResource[];
  readonly #inner: Storage<T>;
  readonly #repositories: RepositoriesOnDemand;
  /** Ids of repositories that another process has written since they were read. */
  readonly #outdated = new Set<string>();

  constructor(inner: Storage<T>, repositories: RepositoriesOnDemand) {
    this.kind = inner.kind;
    this.subResources = inner.subResources;
    // They open what they need by themselves: a comparison needs two repositories.
    this.readOnlySubResources = inner.readOnlySubResources ?? [];
    this.#inner = inner;
    this.#repositories = repositories;
  }

  async get(context: RequestContext, key: ObjectKey): Promise<Stored<T>> {
    await this.#open(key);
    return this.#inner.get(context, key);
  }

  async list(context: RequestContext, options: ListOptions = {}): Promise<ListResult<T>> {
    const { namespace, fieldSelector } = options;
    const repository = fieldSelector?.requirements.find(
      ({ path, operator }) => path === 'spec.repository' && operator === '=',
    )?.value;
    if (repository === undefined) await this.#repositories.openAll();
    else for (const id of await this.#idsOf(repository, namespace)) await this.#repositories.open(id);
    return this.#inner.list(context, options);
  }

  watch(context: RequestContext, options: WatchOptions): AsyncIterable<WatchEvent<T>> {
    return this.#inner.watch(context, options);
  }

  async create(context: RequestContext, object: T): Promise<Stored<T>> {
    const { repository } = (object as { readonly spec?: { readonly repository?: string } }).spec ?? {};
    if (repository !== undefined)
      await this.#repositories.open(`${object.metadata.namespace ?? DEFAULT_NAMESPACE}/${repository}`);
    return this.#inner.create(context, object);
  }

  update(context: RequestContext, object: T): Promise<Stored<T>> {
    return this.#write(object.metadata, () => this.#inner.update(context, object));
  }

  updateSubResource(context: RequestContext, name: string, object: T): Promise<Stored<T>> {
    return this.#write(object.metadata, () => this.#inner.updateSubResource(context, name, object));
  }

  async delete(context: RequestContext, key: ObjectKey, options?: DeleteOptions): Promise<Stored<T>> {
    // Packages of other repositories may come from it.
    await this.#repositories.openAll();
    return this.#write(key, () => this.#inner.delete(context, key, options));
  }

  async #write(key: ObjectKey, write: () => Promise<Stored<T>>): Promise<Stored<T>> {
    await this.#open(key);
    try {
      return await write();
    } catch (error) {
      // A client that retries reads the object first, and must get the changes of the other writer.
      if (isSluiceError(error, 'Conflict') || isSluiceError(error, 'Busy')) this.#outdated.add(repositoryOf(key));
      throw error;
    }
  }

  async #open(key: ObjectKey): Promise<void> {
    const id = repositoryOf(key);
    await this.#repositories.open(id);
    if (this.#outdated.delete(id)) await this.#repositories.refresh(id);
  }

  /** Of a repository that no namespace has, the one that a message is to name. */
  async #idsOf(repository: string, namespace: string | undefined): Promise<readonly string[]> {
    if (namespace !== undefined) return [`${namespace}/${repository}`];
    const found = await this.#repositories.named(repository);
    return found.length === 0 ? [`${DEFAULT_NAMESPACE}/${repository}`] : found;
  }
}

/** The id of the repository that the name of an object begins with: names of repositories have no dot. */
function repositoryOf({ namespace = DEFAULT_NAMESPACE, name }: ObjectKey): string {
  return `${namespace}/${name.split('.', 1)[0]}`;
}
