import type { KindHolder, KindName, SelectableKinds } from '../../../controllers/package-variant/selectable-kind.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { HttpClient } from '../../kubernetes/http-client.ts';
import { readOnlyKind, readServedKinds, type ServedKind } from '../../kubernetes/served-kinds.ts';
import { ClusterStorage } from '../../kubernetes/storage/cluster-storage.ts';
import { keyText } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { Registry } from '../../resource/storage/registry.ts';

export interface ClusterKindsOptions {
  /** Has Sluice's own kinds. The others are added to it, and removed. */
  readonly registry: Registry;
  readonly client: HttpClient;
  readonly clock: Clock;
  /** Ends the informers of a kind that is registered no longer. */
  readonly release: (kind: Kind) => void;
  readonly onError: (error: unknown) => void;
  /** Aborts when the term ends. */
  readonly signal: AbortSignal;
}

/** Milliseconds after which it is read again what the cluster serves: users define kinds, and delete their definitions. */
const READ_INTERVAL_MS = 30_000;
/** Milliseconds for it. A server of one group, behind the aggregator, must not occupy workers for long. */
const READ_TIMEOUT_MS = 10_000;
/** Kinds besides Sluice's own that the variants and sets of one namespace may name. Each has a watch. */
const MAX_KINDS_PER_NAMESPACE = 20;
const NEEDED_VERBS = ['list', 'watch'];

/** A kind that variants or sets name. */
interface NamedKind extends KindName {
  /** The variants and sets, by their namespaces. */
  readonly holders: Map<string, Set<string>>;
  /** While it is registered. */
  registered: Kind | undefined;
  /** Why it is not registered. */
  problem: string | undefined;
  /** Ends when it was read for the first time whether the cluster serves it. */
  firstRead: Promise<void>;
}

/**
 * The kinds of a cluster that variants and sets name, besides those that Sluice has. While one of them is named and served, it is registered;
 * informers of it are those of all kinds.
 */
export class ClusterKinds implements SelectableKinds {
  readonly #options: ClusterKindsOptions;
  readonly #named = new Map<string, NamedKind>();
  /** What each variant and set names, by its text. */
  readonly #held = new Map<string, ReadonlySet<string>>();
  /** Reads of versions of groups that are in progress. */
  readonly #reading = new Map<string, Promise<void>>();
  #isScheduled = false;

  constructor(options: ClusterKindsOptions) {
    this.#options = options;
  }

  kindOf(object: KindName): Kind | undefined {
    return this.#options.registry.kindOf(object);
  }

  kinds(): Kind[] {
    return this.#options.registry.kinds();
  }

  onChange(listener: () => void): () => void {
    return this.#options.registry.onChange(listener);
  }

  problemOf(name: KindName): string | undefined {
    const named = this.#named.get(idOf(name));
    if (named !== undefined) return named.problem;
    if (this.kindOf(name) !== undefined) return undefined;
    return `variants and sets of a namespace may name ${MAX_KINDS_PER_NAMESPACE} kinds besides those of Sluice; name fewer`;
  }

  /** Never rejects: what cannot be read is the problem of the kind until it can be. */
  async hold(holder: KindHolder, names: readonly KindName[]): Promise<void> {
    const { namespace = '' } = holder;
    const text = `${holder.kind} ${keyText(holder)}`;
    const wanted = new Map(names.map((name) => [idOf(name), name]));
    const before = this.#held.get(text) ?? new Set();
    const reads: Promise<void>[] = [];
    const held = new Set<string>();
    for (const [id, name] of wanted) {
      const known = this.#named.get(id);
      const isFirst = known?.holders.has(namespace) === false;
      const named = known ?? this.#add(name, namespace);
      if (named === undefined || (isFirst && !this.#hasRoom(namespace))) continue;
      held.add(id);
      named.holders.set(namespace, (named.holders.get(namespace) ?? new Set()).add(text));
      reads.push(named.firstRead);
    }
    if (held.size === 0) this.#held.delete(text);
    else this.#held.set(text, held);
    for (const id of before) if (!held.has(id)) this.#drop(id, namespace, text);
    await Promise.all(reads);
  }

  /** Undefined for a kind of Sluice, and for one too many. */
  #add({ apiVersion, kind }: KindName, namespace: string): NamedKind | undefined {
    if (this.kindOf({ apiVersion, kind }) !== undefined || !this.#hasRoom(namespace)) return undefined;
    const named: NamedKind = {
      ...{ apiVersion, kind, holders: new Map(), registered: undefined, problem: undefined },
      firstRead: Promise.resolve(),
    };
    this.#named.set(idOf(named), named);
    named.firstRead = this.#read(apiVersion);
    this.#schedule();
    return named;
  }

  #hasRoom(namespace: string): boolean {
    const own = [...this.#named.values()].filter(({ holders }) => holders.has(namespace));
    return own.length < MAX_KINDS_PER_NAMESPACE;
  }

  #drop(id: string, namespace: string, holder: string): void {
    const named = this.#named.get(id);
    const holders = named?.holders.get(namespace);
    if (named === undefined || holders?.delete(holder) !== true) return;
    if (holders.size === 0) named.holders.delete(namespace);
    if (named.holders.size > 0) return;
    this.#named.delete(id);
    this.#unregister(named);
  }

  #unregister(named: NamedKind): void {
    const { registered } = named;
    if (registered === undefined) return;
    named.registered = undefined;
    this.#options.registry.unregister(registered);
    this.#options.release(registered);
  }

  /** Reads a version of a group, for all kinds of it that are named. */
  #read(apiVersion: string): Promise<void> {
    const present = this.#reading.get(apiVersion);
    if (present !== undefined) return present;
    const reading = this.#readNow(apiVersion);
    this.#reading.set(apiVersion, reading);
    return reading;
  }

  async #readNow(apiVersion: string): Promise<void> {
    const { client, clock, signal, onError } = this.#options;
    const end = new AbortController();
    const cancel = clock.schedule(READ_TIMEOUT_MS, () =>
      end.abort(new SluiceError('Timeout', `no response within ${READ_TIMEOUT_MS / 1000} s`)),
    );
    /** Ends the read: those that are named meanwhile are concerned too, later ones need another read. */
    const concerned = () => {
      this.#reading.delete(apiVersion);
      return [...this.#named.values()].filter((one) => one.apiVersion === apiVersion);
    };
    try {
      const served = await readServedKinds(client, apiVersion, AbortSignal.any([signal, end.signal]));
      for (const named of concerned()) this.#update(named, served.get(named.kind));
    } catch (error) {
      const waiting = concerned();
      if (signal.aborted) return;
      const isWrong = isSluiceError(error, 'InvalidInput');
      if (!isWrong) onError(error);
      // What was known before holds.
      for (const named of waiting)
        if (named.registered === undefined)
          named.problem = isWrong
            ? messageOf(error)
            : `what the cluster serves in version ${apiVersion} cannot be read: ${messageOf(error)}`;
    } finally {
      cancel();
    }
  }

  #update(named: NamedKind, served: ServedKind | undefined): void {
    const { registry, client } = this.#options;
    const problem = problemOf(named, served);
    if (problem === undefined && named.registered?.plural === served?.plural) return;
    this.#unregister(named);
    named.problem = problem;
    if (problem !== undefined || served === undefined) return;
    named.registered = readOnlyKind(named.apiVersion, named.kind, served);
    registry.register(new ClusterStorage(named.registered, client));
  }

  #schedule(): void {
    const { clock, signal } = this.#options;
    if (this.#isScheduled || signal.aborted || this.#named.size === 0) return;
    this.#isScheduled = true;
    const cancel = clock.schedule(READ_INTERVAL_MS, () => {
      signal.removeEventListener('abort', cancel);
      const versions = new Set([...this.#named.values()].map(({ apiVersion }) => apiVersion));
      void Promise.all([...versions].map((version) => this.#read(version))).then(() => {
        this.#isScheduled = false;
        this.#schedule();
      });
    });
    signal.addEventListener('abort', cancel);
  }
}

/** Why a kind cannot be registered, with the next step. */
function problemOf({ kind }: KindName, served: ServedKind | undefined): string | undefined {
  if (served === undefined) return 'define the kind';
  if (!served.namespaced)
    return `${kind} objects are in no namespace; select objects of the namespace of the set or variant`;
  const missing = NEEDED_VERBS.filter((verb) => !served.verbs.includes(verb));
  return missing.length === 0 ? undefined : `${kind} objects do not support ${missing.join(' and ')}`;
}

function idOf({ apiVersion, kind }: KindName): string {
  return `${apiVersion} ${kind}`;
}
