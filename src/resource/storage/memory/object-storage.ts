import { randomUUID } from 'node:crypto';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import {
  deepFreeze,
  type KubernetesObject,
  keyOf,
  keyText,
  type ObjectKey,
  type ObjectMeta,
  type Stored,
} from '../../object/object.ts';
import type { RequestContext } from '../../object/request-context.ts';
import { sameValue } from '../../object/same-value.ts';
import { settledVersion } from '../../object/settled-version.ts';
import type { Kind } from '../../schema/kind.ts';
import type { KindIdentity } from '../../schema/kind-identity.ts';
import type { EventLog } from '../../watch/event-log.ts';
import { type IndexKey, indexedObject, indexKeysOf, narrowestKey, sharedKeysOf } from '../../watch/index-key.ts';
import { compileSelection } from '../selection.ts';
import {
  ALL_VERBS,
  type DeleteOptions,
  type ListOptions,
  type ListResult,
  type Storage,
  type Verb,
  type WatchEvent,
  type WatchOptions,
} from '../storage.ts';
import type { Committer, Transaction } from './commit.ts';
import { frozenCopy } from './frozen-copy.ts';
import { ListPages } from './list-pages.ts';
import type { NamespaceQuota } from './namespace-quota.ts';
import { ObjectIndex } from './object-index.ts';
import {
  checkPreconditions,
  createdObject,
  isDeletionDelayed,
  markedForDeletion,
  notFound,
  refuseForbiddenDeletion,
  resourceName,
  updatedObject,
  withStatus,
} from './object-rules.ts';

export interface ObjectStorageOptions {
  readonly clock: Clock;
  /** Shared by all kinds that rise in one version. */
  readonly log: EventLog;
  readonly committer: Committer;
  /** Makes uids and the random part of generated names. Default: random UUIDs. */
  readonly uuid?: () => string;
  /** Verbs that clients may use; all if absent. */
  readonly verbs?: readonly Verb[];
  /** Shared by all kinds. Default: none. */
  readonly quota?: NamespaceQuota;
}

/** The name under which a kind's changes are logged. */
export function topicOf(kind: Pick<KindIdentity, 'apiVersion' | 'kind'>): string {
  return `${kind.apiVersion}/${kind.kind}`;
}

/** Replaces `spec.finalizers` of a kind whose deletion they delay. */
const FINALIZE = 'finalize';

/** Objects of one kind as they are written: all of them in memory, and as durable as the committer makes them. */
export class ObjectStorage<T extends KubernetesObject = KubernetesObject> implements Storage<T> {
  readonly verbs?: readonly Verb[];
  #kind: Kind<T>;
  readonly #clock: Clock;
  readonly #log: EventLog;
  readonly #committer: Committer;
  readonly #uuid: () => string;
  readonly #quota: NamespaceQuota | undefined;
  readonly #topic: string;
  readonly #objects = new ObjectIndex<Stored<T>>((object) => sharedKeysOf(indexedObject(object), this.kind));
  readonly #pages: ListPages<Stored<T>, T>;
  /** For an object that status writes produced: the version before the first of them. */
  readonly #sinceStatus = new WeakMap<Stored<T>, string>();

  constructor(kind: Kind<T>, options: ObjectStorageOptions) {
    this.#kind = kind;
    // As in Kubernetes, namespaces are deleted one by one.
    const hasNoCollection = kind.strategy.delaysDeletion !== undefined;
    const verbs =
      options.verbs ?? (hasNoCollection ? ALL_VERBS.filter((verb) => verb !== 'deletecollection') : undefined);
    if (verbs !== undefined) this.verbs = verbs;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#committer = options.committer;
    this.#uuid = options.uuid ?? randomUUID;
    this.#quota = options.quota;
    this.#topic = topicOf(kind);
    this.#pages = new ListPages(options.clock, (object) => object);
  }

  get kind(): Kind<T> {
    return this.#kind;
  }

  get subResources(): readonly string[] {
    const { hasStatus, delaysDeletion } = this.#kind.strategy;
    return [...(hasStatus ? ['status'] : []), ...(delaysDeletion === undefined ? [] : [FINALIZE])];
  }

  /** Keeps the objects to another definition of the same kind from now on. What is stored stays as it is. */
  redefine(kind: Kind<T>): void {
    if (topicOf(kind) !== this.#topic)
      throw new SluiceError('Internal', `${this.#topic} cannot be redefined as ${topicOf(kind)}`);
    const sameFields = sameValue(this.#kind.selectableFields, kind.selectableFields);
    this.#kind = kind;
    for (const object of [...this.#objects.values()]) this.#put(object);
    // The field keys of the objects have changed, so watchers with a field selector must list again.
    if (!sameFields) this.#log.expire(this.#topic);
  }

  /** Loads objects that were stored before, and freezes them. */
  load(objects: Iterable<T>): void {
    for (const object of objects) {
      this.#put(deepFreeze(object) as Stored<T>);
      this.#quota?.account(this.kind, undefined, object);
    }
  }

  /** Returns what the objects use of the quota. The storage is not used afterwards; what is durable stays as it is. */
  release(): void {
    for (const object of this.#objects.values()) this.#quota?.account(this.kind, object, undefined);
  }

  async get(_context: RequestContext, key: ObjectKey): Promise<Stored<T>> {
    return this.#existing(key);
  }

  async list(_context: RequestContext, options: ListOptions = {}): Promise<ListResult<T>> {
    const narrow = narrowestKey(options, this.kind);
    const selects = compileSelection(options, this.kind);
    return this.#pages.list(
      options,
      this.#log.version,
      () => this.#objects.select(narrow),
      // The namespace alone is what the index key selects.
      hasSelectors(options) ? selects : undefined,
    );
  }

  watch(_context: RequestContext, options: WatchOptions): AsyncIterable<WatchEvent<T>> {
    const { resourceVersion, signal } = options;
    const selects = compileSelection(options, this.kind);
    return this.#log.follow<T>(this.#topic, {
      ...{ resourceVersion, signal, selects },
      indexKey: narrowestKey(options, this.kind),
    });
  }

  create(context: RequestContext, object: T): Promise<Stored<T>> {
    return this.#committer.run((transaction) => {
      const next = createdObject(this.kind, object, this.#clock.now(), this.#uuid);
      if (this.#objects.get(keyOf(next)) !== undefined)
        throw new SluiceError(
          'AlreadyExists',
          `${resourceName(this.kind)} ${JSON.stringify(next.metadata.name)} already exists`,
        );
      return this.#write(context, transaction, undefined, next);
    });
  }

  update(context: RequestContext, object: T): Promise<Stored<T>> {
    return this.#change(context, object, (old) => updatedObject(this.kind, old, object), 'rest');
  }

  async updateSubResource(context: RequestContext, name: string, object: T): Promise<Stored<T>> {
    if (!this.subResources.includes(name))
      throw new SluiceError('Unsupported', `${resourceName(this.kind)} have no sub-resource ${JSON.stringify(name)}`);
    if (name === FINALIZE) return this.#change(context, object, (old) => ({ ...old, spec: object.spec }), name);
    return this.#change(context, object, (old) => withStatus(old, object), 'status');
  }

  delete(context: RequestContext, key: ObjectKey, options: DeleteOptions = {}): Promise<Stored<T>> {
    return this.#committer.run((transaction) => {
      const old = this.#existing(key);
      checkPreconditions(this.kind, old, options);
      refuseForbiddenDeletion(this.kind, old);
      const marked = markedForDeletion(old, options, this.#clock.now());
      if (!isDeletionDelayed(this.kind, marked)) return this.#remove(context, transaction, old, old);
      return sameValue(old, marked) ? old : this.#write(context, transaction, old, marked);
    });
  }

  /** Updates an existing object. If only finalizers delayed its deletion, it is deleted with the last of them. */
  #change(
    context: RequestContext,
    object: T,
    change: (old: Stored<T>) => T,
    part: 'rest' | 'status' | typeof FINALIZE,
  ): Promise<Stored<T>> {
    return this.#committer.run((transaction) => {
      const old = this.#existing(keyOf(object));
      checkPreconditions(this.kind, old, part === 'rest' ? this.#settled(old, object.metadata) : object.metadata);
      const next = change(old);
      if (sameValue(old, next)) return old;
      const finished = next.metadata.deletionTimestamp !== undefined && !isDeletionDelayed(this.kind, next);
      if (finished) return this.#remove(context, transaction, old, next);
      const after = this.#write(context, transaction, old, next);
      if (part === 'status') this.#sinceStatus.set(after, this.#sinceStatus.get(old) ?? old.metadata.resourceVersion);
      return after;
    });
  }

  /** Returns the expected version of an update, which ignores status writes that do not affect it. */
  #settled(old: Stored<T>, { uid, resourceVersion }: ObjectMeta): Pick<ObjectMeta, 'uid' | 'resourceVersion'> {
    const since = this.kind.strategy.updatesIgnoreStatusWrites ? this.#sinceStatus.get(old) : undefined;
    if (since === undefined) return { uid, resourceVersion };
    const current = old.metadata.resourceVersion;
    return { uid, resourceVersion: settledVersion(resourceVersion, { since, current }) };
  }

  #existing(key: ObjectKey): Stored<T> {
    const found = this.#objects.get(key);
    if (found === undefined) throw notFound(this.kind, key.name);
    return found;
  }

  #write(context: RequestContext, transaction: Transaction, before: Stored<T> | undefined, wanted: T): Stored<T> {
    const isAuthenticated = context.face === 'api';
    const { withCreator } = this.kind.strategy;
    const next =
      (isAuthenticated ? withCreator?.(wanted, context.actor.name, before as T | undefined) : undefined) ?? wanted;
    if (isAuthenticated) this.#quota?.check(this.kind, before, next);
    if (context.dryRun === true) return versioned(next, before?.metadata.resourceVersion ?? '');
    let after: Stored<T> | undefined;
    transaction.change<T>(
      this.#topic,
      keyText(keyOf(next)),
      (resourceVersion) => {
        after = versioned(next, resourceVersion);
        this.#put(after);
        this.#quota?.account(this.kind, before, after);
        return this.#logged(before, after);
      },
      () => {
        this.#restore(keyOf(next), before);
        this.#quota?.account(this.kind, after, before);
      },
    );
    return after as Stored<T>;
  }

  #remove(context: RequestContext, transaction: Transaction, old: Stored<T>, last: T): Stored<T> {
    if (context.dryRun === true) return versioned(last, old.metadata.resourceVersion);
    let removed = old;
    transaction.change<T>(
      this.#topic,
      keyText(keyOf(old)),
      (resourceVersion) => {
        removed = versioned(last, resourceVersion);
        this.#objects.delete(keyOf(old));
        this.#quota?.account(this.kind, old, undefined);
        return this.#logged(old, undefined);
      },
      () => {
        this.#restore(keyOf(old), old);
        this.#quota?.account(this.kind, undefined, old);
      },
    );
    return removed;
  }

  #put(object: Stored<T>): void {
    this.#objects.set(keyOf(object), object);
  }

  #restore(key: ObjectKey, before: Stored<T> | undefined): void {
    if (before === undefined) this.#objects.delete(key);
    else this.#put(before);
  }

  #indexKeys(object: Stored<T>): IndexKey[] {
    return indexKeysOf(indexedObject(object), this.kind);
  }

  #logged(before: Stored<T> | undefined, after: Stored<T> | undefined) {
    const indexKeys = () =>
      new Set([
        ...(before === undefined ? [] : this.#indexKeys(before)),
        ...(after === undefined ? [] : this.#indexKeys(after)),
      ]);
    return { before, after, indexKeys };
  }
}

function versioned<T extends KubernetesObject>(object: T, resourceVersion: string): Stored<T> {
  return frozenCopy({ ...object, metadata: { ...object.metadata, resourceVersion } }) as Stored<T>;
}

/** True if the selection has more than a namespace. */
function hasSelectors({ labelSelector, fieldSelector }: ListOptions): boolean {
  return (labelSelector?.requirements.length ?? 0) > 0 || (fieldSelector?.requirements.length ?? 0) > 0;
}
