import type { Informer } from '../../controller/informer.ts';
import { ObjectReader } from '../../controller/object-reader.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { allowedSignersOf, hostUsersNameOf } from '../../package/store/policies/user-lists.ts';
import type { Client } from '../../resource/client/client.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import { DNS_SUBDOMAIN, followsRule } from '../../resource/object/name-rules.ts';
import { keyText, type ObjectKey, type Stored } from '../../resource/object/object.ts';
import type { ObjectOf } from '../../resource/schema/kind.ts';

type ConfigMap = ObjectOf<typeof configMapKind>;

export interface NamedListsOptions {
  readonly client: Client;
  readonly clock: Clock;
  /** Of all Repositories; this adds an index and a handler to it. */
  readonly repositories: Informer<Repository>;
  /** Called with every failed list and watch. */
  readonly onError: (error: unknown) => void;
}

/** Each takes up to 1 MiB of memory, a watch, and one request in each decision about a repository that names it. */
export const MAX_LISTS_PER_NAMESPACE = 32;
/** One list that cannot be read must not stop the others. */
const LOAD_TIMEOUT_MS = 10_000;

/**
 * The ConfigMaps that Repositories name as lists of their people, and no others: the ConfigMaps of a cluster have no bound, and any user may
 * write some. One informer follows each name, from when a Repository names it until none does.
 */
export class NamedLists {
  readonly #options: NamedListsOptions;
  /** By namespace and name. */
  readonly #readers = new Map<string, ObjectReader<ConfigMap>>();
  /** Names of ConfigMaps that are followed, by namespace. */
  readonly #followed = new Map<string, ReadonlySet<string>>();
  /** Namespaces whose Repositories changed. */
  readonly #changed = new Set<string>();
  #stopped = false;

  constructor(options: NamedListsOptions) {
    this.#options = options;
    const { repositories } = options;
    repositories.addIndex('naming', (repository) =>
      namesIn(repository).length === 0 ? [] : [namespaceOf(repository)],
    );
    repositories.addHandler((event) => {
      const isAffected = [event.object, ...(event.type === 'update' ? [event.old] : [])].some(
        (repository) => namesIn(repository).length > 0,
      );
      if (!isAffected) return;
      // The events of a list arrive together.
      if (this.#changed.size === 0) queueMicrotask(() => this.#follow());
      this.#changed.add(namespaceOf(event.object));
    });
  }

  /**
   * The ConfigMap of a name; undefined if there is none. Throws Unavailable before it was read, since an absent list is not the same as an
   * unknown one, and LimitExceeded if older Repositories of the namespace name too many others.
   */
  get({ namespace = '', name }: ObjectKey): Stored<ConfigMap> | undefined {
    // A ConfigMap cannot have such a name.
    if (!followsRule(name, DNS_SUBDOMAIN)) return undefined;
    this.#follow();
    const reader = this.#readers.get(keyText({ namespace, name }));
    if (reader !== undefined) return reader.get({ namespace, name });
    if ((this.#followed.get(namespace)?.size ?? 0) >= MAX_LISTS_PER_NAMESPACE)
      throw new SluiceError(
        'LimitExceeded',
        `cannot read ConfigMap ${name}: the Repositories of namespace ${namespace} name more than ${MAX_LISTS_PER_NAMESPACE} ConfigMaps with users; let them share lists`,
      );
    throw new SluiceError(
      'Unavailable',
      `ConfigMap ${name} of namespace ${namespace} has not been read yet; retry soon`,
    );
  }

  /**
   * Reads those lists again that these Repositories name; call it when the Repositories are current. Rejects with Unavailable or Timeout if
   * one cannot be read.
   */
  async refresh(repositories: readonly Stored<Repository>[]): Promise<void> {
    this.#follow();
    const keys = repositories.flatMap((repository) =>
      namesIn(repository).map((name) => keyText({ namespace: namespaceOf(repository), name })),
    );
    await Promise.all([...new Set(keys)].map((key) => this.#readers.get(key)?.refresh()));
  }

  /** Resolves when all lists that are named now were read, or after some seconds: then those that were not stay Unavailable. */
  async loaded(): Promise<void> {
    this.#follow();
    const { promise: expired, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.schedule(LOAD_TIMEOUT_MS, resolve);
    const all = Promise.allSettled([...this.#readers.values()].map(({ informer }) => informer.whenSynced()));
    await Promise.race([all, expired]);
    cancel();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#readers.values()].map((reader) => reader.stop()));
  }

  /** Starts and stops informers, so that they follow the names in the Repositories that changed. */
  #follow(): void {
    const namespaces = [...this.#changed];
    this.#changed.clear();
    if (this.#stopped) return;
    for (const namespace of namespaces) {
      const before = this.#followed.get(namespace) ?? new Set<string>();
      const wanted = this.#namesIn(namespace);
      if (wanted.size === 0) this.#followed.delete(namespace);
      else this.#followed.set(namespace, wanted);
      for (const name of wanted) if (!before.has(name)) this.#start({ namespace, name });
      for (const name of before) if (!wanted.has(name)) this.#end({ namespace, name });
    }
  }

  /** The names in the Repositories of a namespace. The oldest Repositories come first, so that further ones take nothing from them. */
  #namesIn(namespace: string): Set<string> {
    const naming = this.#options.repositories.byIndex('naming', namespace).sort(byAge);
    return new Set([...new Set(naming.flatMap(namesIn))].slice(0, MAX_LISTS_PER_NAMESPACE));
  }

  #start(key: ObjectKey & { readonly namespace: string }): void {
    const { client, clock, onError } = this.#options;
    const reader = new ObjectReader({
      ...{ client, clock, onError, kind: configMapKind },
      selection: { namespace: key.namespace, fieldSelector: `metadata.name=${key.name}` },
    });
    this.#readers.set(keyText(key), reader);
    reader.informer.start();
  }

  #end(key: ObjectKey): void {
    const reader = this.#readers.get(keyText(key));
    this.#readers.delete(keyText(key));
    void reader?.stop();
  }
}

/** The names that a Repository mentions and that a ConfigMap can have. */
function namesIn(repository: Stored<Repository>): string[] {
  return [allowedSignersOf(repository), hostUsersNameOf(repository)].filter(
    (name) => name !== undefined && followsRule(name, DNS_SUBDOMAIN),
  ) as string[];
}

function namespaceOf({ metadata }: Stored<Repository>): string {
  return metadata.namespace ?? '';
}

function byAge({ metadata: one }: Stored<Repository>, { metadata: two }: Stored<Repository>): number {
  const [left, right] = [one, two].map(({ creationTimestamp = '', name }) => `${creationTimestamp} ${name}`);
  return (left ?? '') < (right ?? '') ? -1 : 1;
}
