import { mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';

const BUSY_TIMEOUT_MS = 1000;
const TABLE = 'CREATE TABLE IF NOT EXISTS seen (id TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT, WITHOUT ROWID';
const rowsSchema = z.array(z.object({ id: z.string(), at: z.int() }));

export interface SeenEntry {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/**
 * The messages of `SeenMessages` in a SQLite file, so that those of before a restart, or a kill, are known after it. A file that
 * cannot be read is replaced: without it a repeated message has the effect of a new one, which is one more read of the repository.
 */
export class SeenFile {
  readonly #path: string;
  readonly #onError: (error: unknown) => void;
  #database: DatabaseSync | undefined;

  /** Errors are reported, and lose what the call was about. */
  constructor(path: string, onError: (error: unknown) => void) {
    this.#path = path;
    this.#onError = onError;
  }

  /** Oldest first. */
  load(): readonly SeenEntry[] {
    const read = () =>
      this.#use((database) => rowsSchema.parse(database.prepare('SELECT id, at FROM seen ORDER BY at').all()));
    try {
      return read();
    } catch (error) {
      this.#onError(error);
    }
    try {
      this.close();
      for (const suffix of ['', '-wal', '-shm']) rmSync(`${this.#path}${suffix}`, { force: true });
      return read();
    } catch (error) {
      this.#onError(error);
      return [];
    }
  }

  /** Adds one entry, if there is one, and removes others, all or nothing. */
  replace(removed: readonly string[], added: SeenEntry | undefined): void {
    try {
      this.#use((database) => {
        database.exec('BEGIN IMMEDIATE');
        try {
          const remove = database.prepare('DELETE FROM seen WHERE id = ?');
          for (const one of removed) remove.run(one);
          if (added !== undefined)
            database.prepare('INSERT OR REPLACE INTO seen (id, at) VALUES (?, ?)').run(added.id, added.at);
          database.exec('COMMIT');
        } catch (error) {
          database.exec('ROLLBACK');
          throw error;
        }
      });
    } catch (error) {
      this.#onError(error);
    }
  }

  close(): void {
    this.#database?.close();
    this.#database = undefined;
  }

  #use<Result>(work: (database: DatabaseSync) => Result): Result {
    if (this.#database === undefined) {
      mkdirSync(dirname(this.#path), { recursive: true });
      const database = new DatabaseSync(this.#path);
      // A kill of the process loses nothing; a crash of the machine may.
      database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL`);
      database.exec(TABLE);
      this.#database = database;
    }
    return work(this.#database);
  }
}
