import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { type Clock, timestamp } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { OBJECT_KINDS } from '../../resource/kinds/index.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Actor } from '../../resource/object/request-context.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { DEFAULT_QUOTA, type QuotaLimits } from '../../resource/storage/memory/namespace-quota.ts';
import type { ObjectStorage } from '../../resource/storage/memory/object-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { ObjectDatabase } from '../../resource/storage/sqlite/object-database.ts';
import type { Storage } from '../../resource/storage/storage.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { type DataFolder, exists } from './data-folder.ts';
import { FolderLock } from './folder-lock.ts';
import type { SessionObjects } from './session-objects.ts';

export interface ObjectSetOptions {
  readonly folder: DataFolder;
  readonly clock: Clock;
  /** Without it objects are only read, beside a process that writes. */
  readonly write: boolean;
  readonly quota?: Partial<QuotaLimits> | undefined;
  /** Called with the error of a write that no caller waits for. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Milliseconds that a command waits for another command that writes. */
const WRITE_TIMEOUT_MS = 10_000;

/** The objects of a data folder that are kept as they are written: one storage for each kind, all in one database. */
export class ObjectSet implements SessionObjects {
  readonly log: EventLog;
  readonly database: ObjectDatabase;
  readonly #lock: FolderLock | undefined;
  readonly #storages = new Map<string, ObjectStorage>();

  private constructor(database: ObjectDatabase, clock: Clock, lock: FolderLock | undefined) {
    this.database = database;
    this.#lock = lock;
    // A process that only reads makes no versions either.
    this.log = new EventLog({ clock, ...(lock === undefined ? {} : { journal: database.journal }) });
    database.attach(this.log);
    for (const kind of OBJECT_KINDS) this.add(kind);
  }

  /** Opens the database of a folder, which must be there. */
  static async open({ folder, clock, write, quota, onError = () => undefined }: ObjectSetOptions): Promise<ObjectSet> {
    const fresh = !(await exists(folder.database));
    if (!write && !fresh) {
      return new ObjectSet(ObjectDatabase.open({ path: folder.database, clock, readOnly: true }), clock, undefined);
    }
    const lock = await takeLock(folder, clock);
    try {
      const database = ObjectDatabase.open({
        ...{ path: folder.database, clock, onError, quota: { ...DEFAULT_QUOTA, ...quota } },
      });
      return new ObjectSet(database, clock, lock);
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /** Adds a kind, with its objects in the database. */
  add<T extends KubernetesObject>(kind: Kind<T>): ObjectStorage<T> {
    const storage = this.database.storage(kind, this.log);
    this.#storages.set(idOf(kind), storage as unknown as ObjectStorage);
    return storage;
  }

  remove(kind: Kind): void {
    const id = idOf(kind);
    this.#storages.get(id)?.release();
    this.#storages.delete(id);
  }

  storages(): Storage[] {
    return [...this.#storages.values()] as unknown as Storage[];
  }

  /** A client of these objects alone, for callers without a session. */
  client(actor: Actor): Client {
    const registry = new Registry();
    for (const storage of this.storages()) registry.register(storage);
    return new RegistryClient(registry, actor, 'cli');
  }

  /** Makes the last writes durable and gives the database back. */
  async close(): Promise<void> {
    this.log.close();
    try {
      this.database.close();
    } finally {
      await this.#lock?.release();
    }
  }
}

function idOf(kind: Kind): string {
  return `${kind.apiVersion} ${kind.kind}`;
}

async function takeLock({ databaseLock, path }: DataFolder, clock: Clock): Promise<FolderLock> {
  try {
    return await FolderLock.acquire(path, databaseLock, {
      holder: { since: timestamp(clock.now()) },
      timeoutMs: WRITE_TIMEOUT_MS,
    });
  } catch (error) {
    if (!isSluiceError(error, 'Busy')) throw error;
    throw new SluiceError('Busy', `another process writes the objects of ${path}: ${error.message}`, { cause: error });
  }
}
