import { randomUUID } from 'node:crypto';
import { type Clock, timestamp } from '../foundation/clock.ts';
import { SluiceError } from '../foundation/sluice-error.ts';
import type { EventLog } from './event-log.ts';
import { frozenCopy } from './frozen-copy.ts';
import { invalidObject, invalidValue } from './invalid-object.ts';
import type { Kind } from './kind.ts';
import { type KubernetesObject, keyOf, keyText, type ObjectKey, type Stored, type StoredMeta } from './object.ts';
import type { RequestContext } from './request-context.ts';
import { sameValue } from './same-value.ts';
import { compileSelection } from './selection.ts';
import type { DeleteOptions, ListResult, Selection, Storage, WatchEvent, WatchOptions } from './storage.ts';

export interface MemoryStorageOptions {
  readonly clock: Clock;
  /** Shared by all kinds that rise in one version. */
  readonly log: EventLog;
  /** Makes uids and the random part of generated names. Default: random UUIDs. */
  readonly uuid?: () => string;
}

const GENERATED_SUFFIX_LENGTH = 5;

/** Objects of one kind in memory. Nothing outlives the process: for configuration read from files, and for tests. */
export class MemoryStorage<T extends KubernetesObject = KubernetesObject> implements Storage<T> {
  readonly kind: Kind<T>;
  readonly subResources: readonly string[];
  readonly #clock: Clock;
  readonly #log: EventLog;
  readonly #uuid: () => string;
  readonly #topic: string;
  readonly #objects = new Map<string, Stored<T>>();

  constructor(kind: Kind<T>, options: MemoryStorageOptions) {
    this.kind = kind;
    this.subResources = kind.hasStatus ? ['status'] : [];
    this.#clock = options.clock;
    this.#log = options.log;
    this.#uuid = options.uuid ?? randomUUID;
    this.#topic = `${kind.apiVersion}/${kind.kind}`;
  }

  async get(_context: RequestContext, key: ObjectKey): Promise<Stored<T>> {
    return this.#existing(key);
  }

  async list(_context: RequestContext, selection: Selection = {}): Promise<ListResult<T>> {
    const selects = compileSelection(selection, this.kind);
    const items = [...this.#objects.values()].filter(selects).sort(byKey);
    return { items: Object.freeze(items), resourceVersion: this.#log.version };
  }

  watch(_context: RequestContext, options: WatchOptions): AsyncIterable<WatchEvent<T>> {
    const selects = compileSelection(options, this.kind);
    return this.#log.follow<T>(this.#topic, { ...options, selects });
  }

  async create(_context: RequestContext, object: T): Promise<Stored<T>> {
    const name = object.metadata.name || this.#generatedName(object);
    const key = keyOf({ metadata: { ...object.metadata, name } });
    const text = keyText(key);
    if (this.#objects.has(text))
      throw new SluiceError('AlreadyExists', `${this.kind.plural} ${JSON.stringify(text)} already exists`);
    const { deletionTimestamp: _never, generateName: _used, ...metadata } = object.metadata;
    const { status: _ignored, ...content } = object;
    return this.#write(text, undefined, {
      ...(this.kind.hasStatus ? content : object),
      metadata: {
        ...metadata,
        name,
        uid: this.#uuid(),
        creationTimestamp: timestamp(this.#clock.now()),
        ...(object.spec === undefined ? {} : { generation: 1 }),
      },
    } as T);
  }

  async update(_context: RequestContext, object: T): Promise<Stored<T>> {
    const old = this.#existing(keyOf(object));
    this.#check(old, object.metadata);
    this.#checkFinalizers(old, object);
    const next = {
      ...object,
      ...(this.kind.hasStatus ? { status: old.status } : {}),
      metadata: { ...object.metadata, ...serverMeta(old.metadata) },
    };
    const grown = old.spec !== undefined && !sameValue(content(old), content(next));
    if (grown) next.metadata = { ...next.metadata, generation: (old.metadata.generation ?? 0) + 1 };
    return this.#replace(old, next);
  }

  async updateSubResource(_context: RequestContext, name: string, object: T): Promise<Stored<T>> {
    if (!this.subResources.includes(name))
      throw new SluiceError('Unsupported', `${this.kind.plural} have no sub-resource ${JSON.stringify(name)}`);
    const old = this.#existing(keyOf(object));
    this.#check(old, object.metadata);
    return this.#replace(old, { ...old, status: object.status });
  }

  async delete(_context: RequestContext, key: ObjectKey, options: DeleteOptions = {}): Promise<Stored<T>> {
    const old = this.#existing(key);
    this.#check(old, options);
    if ((old.metadata.finalizers?.length ?? 0) === 0) return this.#remove(old);
    if (old.metadata.deletionTimestamp !== undefined) return old;
    const deletionTimestamp = timestamp(this.#clock.now());
    return this.#replace(old, { ...old, metadata: { ...old.metadata, deletionTimestamp } });
  }

  #existing(key: ObjectKey): Stored<T> {
    const text = keyText(key);
    const found = this.#objects.get(text);
    if (found === undefined) throw new SluiceError('NotFound', `${this.kind.plural} ${JSON.stringify(text)} not found`);
    return found;
  }

  /** A precondition that is given must hold. */
  #check(
    old: Stored<T>,
    expected: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined },
  ) {
    const { uid, resourceVersion } = old.metadata;
    const differs =
      (expected.uid !== undefined && expected.uid !== uid) ||
      (expected.resourceVersion !== undefined && expected.resourceVersion !== resourceVersion);
    if (differs)
      throw new SluiceError(
        'Conflict',
        `Operation cannot be fulfilled on ${this.kind.plural} ${JSON.stringify(old.metadata.name)}: ` +
          'the object has been modified; read it again and apply your changes to the latest version',
      );
  }

  #checkFinalizers(old: Stored<T>, next: T): void {
    if (old.metadata.deletionTimestamp === undefined) return;
    const known = old.metadata.finalizers ?? [];
    const added = (next.metadata.finalizers ?? []).filter((finalizer) => !known.includes(finalizer));
    if (added.length > 0)
      throw invalidObject(`${this.kind.kind} ${JSON.stringify(old.metadata.name)}`, [
        invalidValue(['metadata', 'finalizers'], added, 'no finalizer can be added while the object is being deleted'),
      ]);
  }

  #generatedName(object: T): string {
    const prefix = object.metadata.generateName;
    if (prefix === undefined)
      throw invalidObject(this.kind.kind, [invalidValue(['metadata', 'name'], '', 'name or generateName is required')]);
    return prefix + this.#uuid().replaceAll('-', '').slice(0, GENERATED_SUFFIX_LENGTH);
  }

  /** Stores what differs; takes the object away if it waited only for its finalizers. */
  #replace(old: Stored<T>, next: T): Stored<T> {
    if (sameValue(old, next)) return old;
    const finished = next.metadata.deletionTimestamp !== undefined && (next.metadata.finalizers?.length ?? 0) === 0;
    return finished ? this.#remove(old, next) : this.#write(keyText(keyOf(old)), old, next);
  }

  #write(text: string, before: Stored<T> | undefined, next: T): Stored<T> {
    let after: Stored<T> | undefined;
    this.#log.append<T>(this.#topic, (resourceVersion) => {
      after = frozenCopy({ ...next, metadata: { ...next.metadata, resourceVersion } }) as Stored<T>;
      this.#objects.set(text, after);
      return { before, after };
    });
    return after as unknown as Stored<T>;
  }

  #remove(old: Stored<T>, last: T = old): Stored<T> {
    let gone = old;
    this.#log.append<T>(this.#topic, (resourceVersion) => {
      gone = frozenCopy({ ...last, metadata: { ...last.metadata, resourceVersion } }) as Stored<T>;
      this.#objects.delete(keyText(keyOf(old)));
      return { before: old, after: undefined };
    });
    return gone;
  }
}

/** What a client cannot change. */
function serverMeta(metadata: StoredMeta): StoredMeta {
  const { name, namespace, uid, resourceVersion, creationTimestamp, generation, deletionTimestamp } = metadata;
  return { name, namespace, uid, resourceVersion, creationTimestamp, generation, deletionTimestamp };
}

/** What generation counts: everything besides metadata and status. */
function content(object: KubernetesObject): object {
  const { metadata: _metadata, status: _status, ...rest } = object;
  return rest;
}

function byKey(left: KubernetesObject, right: KubernetesObject): number {
  return (
    compare(left.metadata.namespace ?? '', right.metadata.namespace ?? '') ||
    compare(left.metadata.name, right.metadata.name)
  );
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
