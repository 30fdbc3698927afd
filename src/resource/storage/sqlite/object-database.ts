import { chmodSync, closeSync, openSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import type { KubernetesObject } from '../../object/object.ts';
import type { Kind } from '../../schema/kind.ts';
import type { EventJournal, EventLog } from '../../watch/event-log.ts';
import type { LogEntry } from '../../watch/log-entry.ts';
import type { Committer, Transaction } from '../memory/commit.ts';
import { NamespaceQuota, type QuotaLimits } from '../memory/namespace-quota.ts';
import { ObjectStorage, topicOf } from '../memory/object-storage.ts';
import type { Verb } from '../storage.ts';
import { JournalTable } from './journal-table.ts';
import { NoteTable } from './note-table.ts';
import { checkSchema, prepareSchema } from './schema.ts';

export interface ObjectDatabaseOptions {
  readonly path: string;
  readonly clock: Clock;
  /** For processes that only read while another one writes. */
  readonly readOnly?: boolean;
  /** Maximum number of events; events older than an hour are removed in any case. Default 100,000. */
  readonly maxJournalEvents?: number;
  /** Approximate maximum size of the events in bytes. Default 512 MiB. */
  readonly maxJournalBytes?: number;
  /** Quota of each namespace. Default: DEFAULT_QUOTA. */
  readonly quota?: QuotaLimits;
  /** Called once for consecutive failures to write what no caller waits for; the next commit that succeeds writes it. */
  readonly onError?: (error: unknown) => void;
}

interface Write {
  readonly work: (transaction: Transaction) => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The changes of one commit: published once they are durable, or undone if they cannot be. */
interface Batch {
  readonly changes: { readonly topic: string; readonly entry: LogEntry }[];
  readonly undos: (() => void)[];
}

/**
 * Objects and events in one SQLite file. All writes of one turn of the event loop share one transaction with one full sync. One
 * process writes; others may read at the same time.
 */
export class ObjectDatabase implements Committer {
  readonly journal: EventJournal;
  readonly quota: NamespaceQuota;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #database: DatabaseSync;
  readonly #journal: JournalTable;
  readonly #putObject: StatementSync;
  readonly #deleteObject: StatementSync;
  #log: EventLog | undefined;
  #queue: Write[] = [];
  readonly #notes: NoteTable[] = [];
  readonly #onError: (error: unknown) => void;
  #scheduled = false;
  #closed = false;
  /** The last commit failed. */
  #failed = false;
  #reportedFailure = false;

  private constructor(options: ObjectDatabaseOptions, database: DatabaseSync) {
    this.#path = options.path;
    this.quota = new NamespaceQuota(options.quota);
    this.#clock = options.clock;
    this.#database = database;
    this.#onError = options.onError ?? (() => undefined);
    this.#journal = new JournalTable(database, {
      clock: options.clock,
      keep: options.maxJournalEvents ?? 100_000,
      keepBytes: options.maxJournalBytes ?? 512 * 1024 * 1024,
      readOnly: options.readOnly === true,
      path: options.path,
      onNote: () => this.#schedule(),
      onError: (error) => this.#report(toSluiceError(error, options.path)),
    });
    this.journal = this.#journal;
    this.#putObject = database.prepare(
      'INSERT INTO objects (topic, key, version, object) VALUES (?, ?, ?, ?) ' +
        'ON CONFLICT (topic, key) DO UPDATE SET version = excluded.version, object = excluded.object',
    );
    this.#deleteObject = database.prepare('DELETE FROM objects WHERE topic = ? AND key = ?');
  }

  /**
   * Opens the file; creates a missing one, readable for its owner only. Throws Corrupt, Unsupported, or Unavailable.
   */
  static open(options: ObjectDatabaseOptions): ObjectDatabase {
    const { path, readOnly = false } = options;
    let database: DatabaseSync | undefined;
    try {
      if (!readOnly) {
        closeSync(openSync(path, 'a', 0o600));
        chmodSync(path, 0o600);
      }
      database = new DatabaseSync(path, { readOnly, timeout: 5000 });
      if (readOnly) checkSchema(database, path);
      else {
        database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 2000;');
        prepareSchema(database, path);
      }
      return new ObjectDatabase(options, database);
    } catch (error) {
      database?.close();
      throw toSluiceError(error, path);
    }
  }

  /** The log that shows what this database has made durable. Must be set before the first write. */
  attach(log: EventLog): void {
    this.#log = log;
  }

  /** The storage of a kind, with all objects that the file has. */
  storage<T extends KubernetesObject>(kind: Kind<T>, log: EventLog, verbs?: readonly Verb[]): ObjectStorage<T> {
    const storage = new ObjectStorage(kind, {
      ...{ clock: this.#clock, log, committer: this, quota: this.quota },
      ...(verbs === undefined ? {} : { verbs }),
    });
    storage.load(this.#objectsOf<T>(topicOf(kind)));
    return storage;
  }

  /** Small texts that are stored next to the objects, such as caches of data that is derived at every start. */
  notes(topic: string): NoteTable {
    const table = new NoteTable(this.#database, topic, () => this.#schedule());
    this.#notes.push(table);
    return table;
  }

  run<Result>(work: (transaction: Transaction) => Result): Promise<Result> {
    if (this.#closed) return Promise.reject(new SluiceError('Unavailable', `${this.#path} is closed`));
    return new Promise<Result>((resolve, reject) => {
      this.#queue.push({ work, resolve: resolve as (result: unknown) => void, reject });
      this.#schedule();
    });
  }

  /** Writes a copy of the whole database, as it is at one moment, to a file that must not exist. Works beside a writing process. */
  copyTo(path: string): void {
    try {
      closeSync(openSync(path, 'wx', 0o600));
      this.#database.prepare('VACUUM INTO ?').run(path);
    } catch (error) {
      throw toSluiceError(error, path);
    }
  }

  /** Commits queued writes and closes the file. */
  close(): void {
    if (this.#closed) return;
    if (this.#scheduled || this.#failed) this.#flush();
    this.#closed = true;
    try {
      this.#journal.close();
    } finally {
      this.#database.close();
    }
  }

  #objectsOf<T>(topic: string): T[] {
    const rows = this.#database.prepare('SELECT object FROM objects WHERE topic = ?').all(topic);
    return rows.map((row) => JSON.parse(String(row.object)) as T);
  }

  #schedule(): void {
    if (this.#scheduled || this.#closed) return;
    this.#scheduled = true;
    setImmediate(() => {
      if (!this.#closed) this.#flush();
    });
  }

  #flush(): void {
    this.#scheduled = false;
    const writes = this.#queue;
    this.#queue = [];
    const batch: Batch = { changes: [], undos: [] };
    const done: (() => void)[] = [];
    try {
      this.#database.exec('BEGIN IMMEDIATE');
      for (const { work, resolve, reject } of writes) {
        const result = this.#attempt(work, batch);
        done.push('error' in result ? () => reject(result.error) : () => resolve(result.value));
      }
      for (const table of this.#notes) table.write();
      this.#journal.write();
      this.#database.exec('COMMIT');
    } catch (error) {
      const failure = toSluiceError(error, this.#path);
      try {
        this.#rollBack(batch);
      } finally {
        for (const { reject } of writes) reject(failure);
      }
      if (writes.length === 0) this.#report(failure);
      this.#failed = true;
      return;
    }
    this.#failed = false;
    this.#reportedFailure = false;
    this.#journal.settle();
    for (const table of this.#notes) table.settle();
    for (const { topic, entry } of batch.changes) this.#log?.publish(topic, entry);
    for (const finish of done) finish();
  }

  /** Applies one write of the batch. If it throws, it has changed nothing, and the other writes continue. */
  #attempt(
    work: (transaction: Transaction) => unknown,
    { changes, undos }: Batch,
  ): { readonly value: unknown } | { readonly error: unknown } {
    const before = undos.length;
    const log = this.#log;
    if (log === undefined) return { error: new SluiceError('Internal', 'no event log is attached to the database') };
    try {
      const value = work({
        change: (topic, key, make, undo) => {
          const version = log.reserve();
          const change = make(String(version));
          undos.push(undo);
          const text = change.after === undefined ? undefined : JSON.stringify(change.after);
          const entry = { version, change, size: text?.length ?? 0 };
          changes.push({ topic, entry });
          this.#store(topic, key, version, text);
          this.#journal.stage(topic, entry, text);
        },
      });
      return { value };
    } catch (error) {
      // A write that failed after its first change leaves the transaction undefined, so the whole batch is rolled back.
      if (undos.length > before) throw error;
      return { error };
    }
  }

  #store(topic: string, key: string, version: bigint, text: string | undefined): void {
    if (text === undefined) this.#deleteObject.run(topic, key);
    else this.#putObject.run(topic, key, version, text);
  }

  /** For failures that no writer gets. */
  #report(failure: unknown): void {
    if (this.#reportedFailure) return;
    this.#reportedFailure = true;
    this.#onError(failure);
  }

  #rollBack({ undos }: Batch): void {
    for (const undo of undos.toReversed()) undo();
    // After some errors SQLite has already rolled back.
    if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
    this.#journal.drop();
  }
}

/** An error of SQLite or the file system, with the file and what to do. */
function toSluiceError(error: unknown, path: string): unknown {
  if (error instanceof SluiceError) return error;
  const code = (error as { errcode?: number }).errcode;
  const corrupt = code === 11 || code === 26;
  return new SluiceError(
    corrupt ? 'Corrupt' : 'Unavailable',
    corrupt
      ? `${path} is damaged: ${messageOf(error)}; bring a backup back with "sluice restore"`
      : `cannot write ${path}: ${messageOf(error)}; nothing was changed`,
    { cause: error },
  );
}
