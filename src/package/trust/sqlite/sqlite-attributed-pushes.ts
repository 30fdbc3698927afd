import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import {
  type AttributedPush,
  type AttributedPushes,
  type KeptPush,
  MAX_LOOKS_OF_REGISTRATION,
  MAX_PUSHES_OF_REF,
  MAX_PUSHES_OF_REGISTRATION,
} from '../ledger/attributed-pushes.ts';

const BUSY_TIMEOUT_MS = 5000;
const SCHEMA_VERSION = 1;

const TABLES = `
  CREATE TABLE pushes (
    position INTEGER PRIMARY KEY,
    registration TEXT NOT NULL,
    repository TEXT NOT NULL,
    ref TEXT NOT NULL,
    oldOid TEXT,
    newOid TEXT NOT NULL,
    user TEXT NOT NULL,
    provider TEXT NOT NULL,
    at TEXT NOT NULL
  ) STRICT;
  CREATE INDEX pushesByRef ON pushes (registration, repository, ref, position);
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

/** Not part of the version: versions that do not know it ignore it. */
const LOOKS = `
  CREATE TABLE IF NOT EXISTS looks (
    position INTEGER PRIMARY KEY,
    registration TEXT NOT NULL,
    repository TEXT NOT NULL,
    oid TEXT NOT NULL,
    ref TEXT NOT NULL,
    UNIQUE (registration, repository, oid)
  ) STRICT;
`;

/** Not part of the version either. */
const SUPERSEDED = 'ALTER TABLE pushes ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0';

const rowSchema = z.object({
  registration: z.string(),
  repository: z.string(),
  ref: z.string(),
  oldOid: z.string().nullable(),
  newOid: z.string(),
  user: z.string(),
  provider: z.string(),
  at: z.string(),
  superseded: z.number(),
});

/** Reports on pushes in a SQLite file, which is opened when it is used for the first time: most data folders never have one. */
export class SqliteAttributedPushes implements AttributedPushes {
  readonly #path: string;
  #database: DatabaseSync | undefined;

  /** `:memory:` keeps them in the process. */
  constructor(path: string) {
    this.#path = path;
  }

  note(push: AttributedPush): void {
    const [newest] = this.latest(push);
    if (newest !== undefined && !newest.isSuperseded && isSame(newest, push)) return;
    this.#use((database) => {
      database.exec('BEGIN IMMEDIATE');
      const { registration, repository, ref, before, after, user, provider, at } = push;
      database
        .prepare(
          'INSERT INTO pushes (registration, repository, ref, oldOid, newOid, user, provider, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
        )
        .run(registration, repository, ref, before ?? null, after, user, provider, at);
      database
        .prepare(
          'DELETE FROM pushes WHERE position IN (SELECT position FROM pushes WHERE registration = ? AND repository = ? AND ref = ? ORDER BY position DESC LIMIT -1 OFFSET ?)',
        )
        .run(registration, repository, ref, MAX_PUSHES_OF_REF);
      database
        .prepare(
          'DELETE FROM pushes WHERE position IN (SELECT position FROM pushes WHERE registration = ? ORDER BY position DESC LIMIT -1 OFFSET ?)',
        )
        .run(registration, MAX_PUSHES_OF_REGISTRATION);
      database.exec('COMMIT');
    });
  }

  latest({
    registration,
    repository,
    ref,
  }: Pick<AttributedPush, 'repository' | 'registration' | 'ref'>): readonly KeptPush[] {
    const rows = this.#use((database) =>
      database
        .prepare('SELECT * FROM pushes WHERE registration = ? AND repository = ? AND ref = ? ORDER BY position DESC')
        .all(registration, repository, ref),
    );
    return rows.map((row) => {
      const { oldOid, newOid, superseded, ...rest } = rowSchema.parse(row);
      return { ...rest, before: oldOid ?? undefined, after: newOid, isSuperseded: superseded !== 0 };
    });
  }

  supersede({ registration, repository }: Parameters<AttributedPushes['supersede']>[0], refs: readonly string[]): void {
    // Deletions are no reason to make a file.
    if (this.#database === undefined && this.#path !== ':memory:' && !existsSync(this.#path)) return;
    this.#use((database) => {
      database.exec('BEGIN IMMEDIATE');
      const mark = database.prepare(
        'UPDATE pushes SET superseded = 1 WHERE registration = ? AND repository = ? AND ref = ? AND superseded = 0',
      );
      for (const ref of refs) mark.run(registration, repository, ref);
      database.exec('COMMIT');
    });
  }

  noteLook(look: Parameters<AttributedPushes['noteLook']>[0]): void {
    if (this.firstLook(look) !== undefined) return;
    const { registration, repository, commit, ref } = look;
    this.#use((database) => {
      database.exec('BEGIN IMMEDIATE');
      database
        .prepare('INSERT OR IGNORE INTO looks (registration, repository, oid, ref) VALUES (?, ?, ?, ?)')
        .run(registration, repository, commit, ref);
      database
        .prepare(
          'DELETE FROM looks WHERE position IN (SELECT position FROM looks WHERE registration = ? ORDER BY position DESC LIMIT -1 OFFSET ?)',
        )
        .run(registration, MAX_LOOKS_OF_REGISTRATION);
      database.exec('COMMIT');
    });
  }

  firstLook({ registration, repository, commit }: Parameters<AttributedPushes['firstLook']>[0]): string | undefined {
    const row = this.#use((database) =>
      database
        .prepare('SELECT ref FROM looks WHERE registration = ? AND repository = ? AND oid = ?')
        .get(registration, repository, commit),
    );
    return row === undefined ? undefined : z.object({ ref: z.string() }).parse(row).ref;
  }

  close(): void {
    this.#database?.close();
    this.#database = undefined;
  }

  /** Ends a failed use. The next one opens the file again: an operator may have replaced a damaged one. */
  #abandon(): void {
    if (this.#path !== ':memory:') this.close();
    else if (this.#database?.isTransaction === true) this.#database.exec('ROLLBACK');
  }

  #use<Result>(work: (database: DatabaseSync) => Result): Result {
    try {
      this.#database ??= open(this.#path);
      return work(this.#database);
    } catch (error) {
      this.#abandon();
      throw new SluiceError(
        'Unavailable',
        `cannot use the reports of Git hosts on pushes in ${this.#path}: ${messageOf(error)}; if the file is damaged, remove it: pushes without a report count as those of an unknown user`,
        { cause: error },
      );
    }
  }
}

function open(path: string): DatabaseSync {
  if (path !== ':memory:') {
    closeSync(openSync(path, 'a', 0o600));
    chmodSync(path, 0o600);
  }
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN IMMEDIATE');
    const version = Number(database.prepare('PRAGMA user_version').get()?.user_version);
    if (version === 0) database.exec(TABLES);
    else if (version !== SCHEMA_VERSION)
      throw new SluiceError(
        'Unsupported',
        `the file has version ${version}, and this version of sluice reads ${SCHEMA_VERSION}`,
      );
    database.exec(LOOKS);
    const columns = database.prepare('PRAGMA table_info(pushes)').all();
    if (!columns.some(({ name }) => name === 'superseded')) database.exec(SUPERSEDED);
    database.exec('COMMIT');
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function isSame(one: AttributedPush, other: AttributedPush): boolean {
  return (['before', 'after', 'user', 'provider'] as const).every((field) => one[field] === other[field]);
}
