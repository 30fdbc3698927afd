import { randomUUID } from 'node:crypto';
import type { Clock } from '../../foundation/clock.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { EventLog } from '../../resource/event-log.ts';
import type { Kind } from '../../resource/kind.ts';
import { MemoryStorage } from '../../resource/memory-storage.ts';
import { type KubernetesObject, keyOf, keyText, type ObjectKey, type Stored } from '../../resource/object.ts';
import type { RequestContext } from '../../resource/request-context.ts';
import type {
  DeleteOptions,
  ListResult,
  Selection,
  Storage,
  WatchEvent,
  WatchOptions,
} from '../../resource/storage.ts';
import {
  type FileVersion,
  fileVersion,
  objectPath,
  readObjectFile,
  removeObjectFile,
  writeObjectFile,
} from './object-file.ts';

export interface FileStorageOptions {
  readonly clock: Clock;
  readonly log: EventLog;
  /** The objects folder. */
  readonly root: string;
  /** Runs a section that no other task and no other process runs at the same time. */
  readonly exclusive: <Result>(section: () => Promise<Result>) => Promise<Result>;
}

/** A file that cannot be used; its object stays as it was when it last could. */
export interface FileProblem {
  readonly path: string;
  readonly kind: Kind;
  readonly message: string;
}

/** Writes that come from a file are not asked who made them. */
const FROM_FILE: RequestContext = { actor: { name: 'file' }, face: 'cli' };

/**
 * Objects of one kind, kept in memory and in one file each. Everything but the status is in the file, and the file is the truth:
 * before every write it is read again, so processes that share the folder see each other's writes and lose none.
 */
export class FileStorage<T extends KubernetesObject = KubernetesObject> implements Storage<T> {
  readonly kind: Kind<T>;
  readonly subResources: readonly string[];
  readonly #options: FileStorageOptions;
  readonly #memory: MemoryStorage<T>;
  readonly #versions = new Map<string, FileVersion>();
  readonly #problems = new Map<string, FileProblem>();
  readonly #objects = new Map<string, Stored<T>>();
  /** Identity and age of an object that is being taken over from its file. */
  #adopted: { readonly uid: string | undefined; readonly created: number } | undefined;

  constructor(kind: Kind<T>, options: FileStorageOptions) {
    const { clock, log } = options;
    this.kind = kind;
    this.#options = options;
    this.#memory = new MemoryStorage(kind, {
      log,
      clock: { now: () => this.#adopted?.created ?? clock.now(), schedule: clock.schedule },
      uuid: () => this.#adopted?.uid ?? randomUUID(),
    });
    this.subResources = this.#memory.subResources;
  }

  get(context: RequestContext, key: ObjectKey): Promise<Stored<T>> {
    return this.#memory.get(context, key);
  }

  list(context: RequestContext, selection?: Selection): Promise<ListResult<T>> {
    return this.#memory.list(context, selection);
  }

  watch(context: RequestContext, options: WatchOptions): AsyncIterable<WatchEvent<T>> {
    return this.#memory.watch(context, options);
  }

  /** All objects as they are now. */
  objects(): Stored<T>[] {
    return [...this.#objects.values()];
  }

  problems(): FileProblem[] {
    return [...this.#problems.values()];
  }

  create(context: RequestContext, object: T): Promise<Stored<T>> {
    return this.#write(object.metadata.name === '' ? undefined : keyOf(object), () =>
      this.#memory.create(context, object),
    );
  }

  update(context: RequestContext, object: T): Promise<Stored<T>> {
    return this.#write(keyOf(object), () => this.#memory.update(context, object));
  }

  delete(context: RequestContext, key: ObjectKey, options?: DeleteOptions): Promise<Stored<T>> {
    return this.#write(key, () => this.#memory.delete(context, key, options));
  }

  /** The status is not kept: whoever reports it does so again after a start. */
  async updateSubResource(context: RequestContext, name: string, object: T): Promise<Stored<T>> {
    const written = await this.#memory.updateSubResource(context, name, object);
    await this.#note(keyOf(object));
    return written;
  }

  /** Takes in what the file of a key says now. Never throws for what stands in the file; see `problems`. */
  async reload(key: ObjectKey): Promise<void> {
    const path = this.#path(key);
    const text = keyText(key);
    const version = await fileVersion(path);
    if (version !== undefined && version === this.#versions.get(text)) return;
    if (version === undefined) {
      this.#versions.delete(text);
      this.#problems.delete(text);
      await this.#forget(key);
      return;
    }
    this.#versions.set(text, version);
    try {
      await this.#adopt(await readObjectFile(path, this.kind));
      this.#problems.delete(text);
    } catch (error) {
      this.#problems.set(text, { path, kind: this.kind, message: messageOf(error) });
    }
  }

  /** Keys that have an object or a file that cannot be used. */
  keys(): ObjectKey[] {
    const keys = new Set([...this.#objects.keys(), ...this.#versions.keys()]);
    return [...keys].map((text) => {
      const slash = text.indexOf('/');
      return slash === -1 ? { name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
    });
  }

  #path(key: ObjectKey): string {
    return objectPath(this.#options.root, this.kind, key);
  }

  /** One write: the file's latest state, the change in memory, the file. If the file cannot be written the change is undone. */
  #write(key: ObjectKey | undefined, change: () => Promise<Stored<T>>): Promise<Stored<T>> {
    return this.#options.exclusive(async () => {
      if (key !== undefined) {
        await this.reload(key);
        this.#refuseDamaged(key);
      }
      const written = await change();
      const actual = keyOf(written);
      const path = this.#path(actual);
      const text = keyText(actual);
      const before = this.#objects.get(text);
      try {
        const stored = await this.#note(actual);
        // Nothing differs, so the file says it already.
        if (stored !== undefined && stored === before) return written;
        if (stored === undefined) await removeObjectFile(path);
        else await writeObjectFile(path, stored);
      } catch (error) {
        this.#versions.delete(text);
        await this.reload(actual);
        throw error;
      }
      const version = await fileVersion(path);
      if (version === undefined) this.#versions.delete(text);
      else this.#versions.set(text, version);
      return written;
    });
  }

  #refuseDamaged(key: ObjectKey): void {
    const problem = this.#problems.get(keyText(key));
    if (problem === undefined) return;
    throw new SluiceError('Corrupt', `${problem.message}; repair or remove ${problem.path} first`);
  }

  /** Brings the copy for synchronous readers up to date; returns the object if there is one. */
  async #note(key: ObjectKey): Promise<Stored<T> | undefined> {
    try {
      const stored = await this.#memory.get(FROM_FILE, key);
      this.#objects.set(keyText(key), stored);
      return stored;
    } catch (error) {
      if (!isSluiceError(error, 'NotFound')) throw error;
      this.#objects.delete(keyText(key));
      return undefined;
    }
  }

  async #adopt(parsed: KubernetesObject): Promise<void> {
    // The kind has judged it.
    const object = parsed as T;
    const key = keyOf(object);
    const { resourceVersion: _version, uid, creationTimestamp, deletionTimestamp, ...metadata } = object.metadata;
    const known = this.#objects.get(keyText(key));
    // Deleted and made anew by another process in between.
    if (known !== undefined && uid !== undefined && uid !== known.metadata.uid) await this.#forget(key);
    const wanted = { ...object, metadata };
    if (this.#objects.has(keyText(key))) await this.#memory.update(FROM_FILE, wanted);
    else {
      const created = creationTimestamp === undefined ? Number.NaN : Date.parse(creationTimestamp);
      this.#adopted = { uid, created: Number.isNaN(created) ? this.#options.clock.now() : created };
      try {
        await this.#memory.create(FROM_FILE, wanted);
      } finally {
        this.#adopted = undefined;
      }
    }
    const stored = await this.#note(key);
    if (deletionTimestamp === undefined || stored === undefined) return;
    await this.#memory.delete(FROM_FILE, key);
    await this.#note(key);
  }

  /** Takes an object out of memory whose file is gone, whatever finalizers it has. */
  async #forget(key: ObjectKey): Promise<void> {
    const known = this.#objects.get(keyText(key));
    if (known === undefined) return;
    const { resourceVersion: _version, finalizers, ...metadata } = known.metadata;
    if ((finalizers ?? []).length > 0) await this.#memory.update(FROM_FILE, { ...known, metadata });
    if (await this.#note(key)) await this.#memory.delete(FROM_FILE, key);
    await this.#note(key);
  }
}
