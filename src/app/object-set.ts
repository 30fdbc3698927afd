import { type Clock, timestamp } from '../foundation/clock.ts';
import { ProcessLock } from '../foundation/process-lock.ts';
import { isSluiceError, SluiceError } from '../foundation/sluice-error.ts';
import { OBJECT_KINDS } from '../resource/kinds/index.ts';
import type { KubernetesObject, ObjectKey, Stored } from '../resource/object/object.ts';
import type { Kind } from '../resource/schema/kind.ts';
import { DEFAULT_QUOTA, type QuotaLimits } from '../resource/storage/memory/namespace-quota.ts';
import type { ObjectStorage } from '../resource/storage/memory/object-storage.ts';
import { ObjectDatabase } from '../resource/storage/sqlite/object-database.ts';
import { EventLog } from '../resource/watch/event-log.ts';
import { type DataFolder, exists } from './data-folder.ts';

export interface ObjectSetOptions {
  readonly folder: DataFolder;
  readonly clock: Clock;
  /** Without it objects are only read, beside whoever writes. */
  readonly write: boolean;
  readonly quota?: Partial<QuotaLimits> | undefined;
  /** Told why what nobody waits for could not be written. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** How long, in milliseconds, a command waits for another one that writes. */
const WRITE_PATIENCE = 10_000;

/** The objects of a data folder that are kept as they are written: one storage for each kind, all in one database. */
export class ObjectSet {
  readonly log: EventLog;
  readonly database: ObjectDatabase;
  readonly #lock: ProcessLock | undefined;
  readonly #storages = new Map<string, ObjectStorage>();

  private constructor(database: ObjectDatabase, clock: Clock, lock: ProcessLock | undefined) {
    this.database = database;
    this.#lock = lock;
    // Whoever only reads makes no versions either.
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

  /** Adds a kind, with what the database has of it. */
  add<T extends KubernetesObject>(kind: Kind<T>): ObjectStorage<T> {
    const storage = this.database.storage(kind, this.log);
    this.#storages.set(idOf(kind), storage as unknown as ObjectStorage);
    return storage;
  }

  remove(kind: Kind): void {
    const id = idOf(kind);
    for (const object of this.#storages.get(id)?.objects() ?? []) this.database.quota.account(kind, object, undefined);
    this.#storages.delete(id);
  }

  storages(): ObjectStorage[] {
    return [...this.#storages.values()];
  }

  /** All objects of a kind as they are now, by name. */
  of<T extends KubernetesObject>(kind: Kind<T>): Stored<T>[] {
    return this.#storage(kind)
      .objects()
      .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  /** The object of a key as it is now; undefined if there is none. */
  find<T extends KubernetesObject>(kind: Kind<T>, key: ObjectKey): Stored<T> | undefined {
    return this.#storage(kind).find(key);
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

  #storage<T extends KubernetesObject>(kind: Kind<T>): ObjectStorage<T> {
    const storage = this.#storages.get(idOf(kind));
    if (storage === undefined) throw new SluiceError('Internal', `the database does not keep ${kind.plural}`);
    // Found by the identity of the kind.
    return storage as unknown as ObjectStorage<T>;
  }
}

function idOf(kind: Kind): string {
  return `${kind.apiVersion} ${kind.kind}`;
}

async function takeLock({ databaseLock, path }: DataFolder, clock: Clock): Promise<ProcessLock> {
  try {
    return await ProcessLock.acquire(databaseLock, {
      says: { since: timestamp(clock.now()) },
      patienceMs: WRITE_PATIENCE,
    });
  } catch (error) {
    if (!isSluiceError(error, 'Busy')) throw error;
    throw new SluiceError('Busy', `another process writes the objects of ${path}: ${error.message}`, { cause: error });
  }
}
