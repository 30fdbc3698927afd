import { SharedCall } from '../foundation/concurrency/shared-call.ts';
import { messageOf, SluiceError } from '../foundation/sluice-error.ts';
import type { Clock } from '../foundation/time/clock.ts';
import type { Client, SelectOptions } from '../resource/client/client.ts';
import type { KubernetesObject, ObjectKey, Stored } from '../resource/object/object.ts';
import type { Kind } from '../resource/schema/kind.ts';
import { Informer } from './informer.ts';

export interface ObjectReaderOptions<T extends KubernetesObject> {
  readonly client: Client;
  readonly kind: Kind<T>;
  /** Default: all objects of the kind. */
  readonly selection?: SelectOptions;
  readonly clock: Clock;
  /** Milliseconds that a refresh waits for the storage. Default 10,000. */
  readonly refreshTimeoutMs?: number;
  /** Called with every failed list and watch; the reader retries. */
  readonly onError?: (error: unknown) => void;
}

const REFRESH_TIMEOUT_MS = 10_000;

/**
 * Reads the objects of one kind synchronously, from an informer, so that the same code works on every storage.
 *
 * Two rules prevent decisions on outdated objects. Before the first list, reads throw Unavailable, since an absent object is not the
 * same as an unknown one. And code that decides calls `refresh` first, since a watch is always somewhat behind: writes that the
 * storage acknowledged before that call are in every later read.
 */
export class ObjectReader<T extends KubernetesObject> {
  /** For controllers that must react to the very state that this reader shows. */
  readonly informer: Informer<T>;
  readonly #options: ObjectReaderOptions<T>;
  #sorted: readonly Stored<T>[] | undefined;
  readonly #sortedIn = new Map<string, readonly Stored<T>[]>();
  /** By namespace; undefined for all. */
  readonly #refreshes = new Map<string | undefined, SharedCall>();

  constructor(options: ObjectReaderOptions<T>) {
    this.#options = options;
    const { client, kind, clock, selection, onError } = options;
    this.informer = new Informer({
      ...{ client, kind, clock },
      ...(selection === undefined ? {} : { selection }),
      ...(onError === undefined ? {} : { onError }),
      onChange: () => this.#forgetSorted(),
    });
    // Handlers of the informer read before it reports that all of a list was handled.
    this.informer.addHandler(() => this.#forgetSorted());
  }

  /**
   * Starts to follow the objects and resolves after the first list. Rejects with Unavailable if the reader is stopped before.
   */
  start(): Promise<void> {
    this.informer.start();
    return this.informer.whenSynced();
  }

  stop(): Promise<void> {
    return this.informer.stop();
  }

  /** The object of a key; undefined if there is none. Throws Unavailable before the first list. */
  get(key: ObjectKey): Stored<T> | undefined {
    this.#expectSynced();
    return this.informer.get(key);
  }

  /** All objects, by name. Throws Unavailable before the first list. */
  list(): readonly Stored<T>[] {
    this.#expectSynced();
    this.#sorted ??= this.informer.list().sort(byName);
    return this.#sorted;
  }

  /** The objects of a namespace, by name. Throws Unavailable before the first list. */
  listIn(namespace: string): readonly Stored<T>[] {
    this.#expectSynced();
    const sorted = this.#sortedIn.get(namespace) ?? this.informer.inNamespace(namespace).sort(byName);
    this.#sortedIn.set(namespace, sorted);
    return sorted;
  }

  /** The objects under a value of an index of the informer. Throws Unavailable before the first list. */
  byIndex(name: string, value: string): Stored<T>[] {
    this.#expectSynced();
    return this.informer.byIndex(name, value);
  }

  /**
   * Resolves when reads return all objects, or all of a namespace, that the storage acknowledged before the call. Rejects with Unavailable or
   * Timeout if the storage cannot be read; the caller must not decide then. Concurrent calls share their lists. A call with a namespace costs
   * nothing that grows with the objects of others.
   */
  refresh(namespace?: string): Promise<void> {
    const shared = this.#refreshes.get(namespace) ?? new SharedCall(() => this.#refresh(namespace));
    this.#refreshes.set(namespace, shared);
    return shared.call().finally(() => {
      if (shared.isIdle && this.#refreshes.get(namespace) === shared) this.#refreshes.delete(namespace);
    });
  }

  #forgetSorted(): void {
    this.#sorted = undefined;
    this.#sortedIn.clear();
  }

  async #refresh(namespace: string | undefined): Promise<void> {
    const { kind, clock, refreshTimeoutMs = REFRESH_TIMEOUT_MS } = this.#options;
    const end = new AbortController();
    const { promise: expired, reject } = Promise.withResolvers<never>();
    const cancel = clock.schedule(refreshTimeoutMs, () => {
      reject(new SluiceError('Timeout', `no answer within ${refreshTimeoutMs / 1000} s`));
      end.abort();
    });
    try {
      // Reads throw before all objects were listed once.
      const scope = this.informer.synced ? namespace : undefined;
      // A storage need not heed the signal.
      await Promise.race([this.informer.refresh(end.signal, scope), expired]);
    } catch (error) {
      const code = error instanceof SluiceError && error.code === 'Timeout' ? 'Timeout' : 'Unavailable';
      throw new SluiceError(
        code,
        `cannot decide without the current ${kind.plural}: ${messageOf(error)}; retry when they can be read`,
        { cause: error },
      );
    } finally {
      cancel();
    }
  }

  #expectSynced(): void {
    if (this.informer.synced) return;
    throw new SluiceError('Unavailable', `the ${this.#options.kind.plural} have not been read yet; retry soon`);
  }
}

function byName({ metadata: left }: KubernetesObject, { metadata: right }: KubernetesObject): number {
  return left.name < right.name ? -1 : 1;
}
