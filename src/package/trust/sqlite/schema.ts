import { DatabaseSync } from 'node:sqlite';
import { SluiceError } from '../../../foundation/sluice-error.ts';

/** Raised with every change of the tables. */
const SCHEMA_VERSION = 1;

/** `SLUT`: the ledger of trust, not the objects. */
const APPLICATION_ID = 0x534c5554;

const TABLES = `
  CREATE TABLE keys (
    fingerprint TEXT NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL,
    publicKey TEXT NOT NULL,
    comment TEXT NOT NULL,
    origin TEXT NOT NULL CHECK (origin IN ('own', 'added')),
    addedAt TEXT NOT NULL,
    revokedAt TEXT,
    revokedOrder INTEGER,
    revokedHeads TEXT CHECK ((revokedAt IS NULL) = (revokedHeads IS NULL) AND (revokedAt IS NULL) = (revokedOrder IS NULL))
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE repositories (
    id TEXT NOT NULL PRIMARY KEY,
    address TEXT NOT NULL,
    mainHead TEXT,
    position INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX repositoriesByAddress ON repositories (address, position);
  CREATE TABLE marks (
    repository TEXT NOT NULL,
    package TEXT NOT NULL,
    workspace TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    digest TEXT NOT NULL,
    position INTEGER NOT NULL,
    proven INTEGER NOT NULL CHECK (proven IN (0, 1)),
    PRIMARY KEY (repository, package, workspace)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE counters (name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO counters (name, value) VALUES ('keysVersion', 0), ('order', 0);
`;

/** Makes the tables of a new ledger, or checks that an old one is of this version. Several processes may do so at once. */
export function prepareLedgerSchema(database: DatabaseSync, path: string): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    if (pragma(database, 'user_version') === 0 && pragma(database, 'application_id') === 0 && isEmpty(database))
      database.exec(`${TABLES} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION};`);
    else checkLedgerSchema(database, path);
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** Throws Corrupt or Unsupported if the file is no ledger of this version. */
export function checkLedgerSchema(database: DatabaseSync, path: string): void {
  if (pragma(database, 'application_id') !== APPLICATION_ID)
    throw new SluiceError(
      'Corrupt',
      `${path} is not a trust ledger of Sluice; bring a backup back with "sluice restore"`,
    );
  const version = pragma(database, 'user_version');
  if (version !== SCHEMA_VERSION)
    throw new SluiceError(
      'Unsupported',
      `${path} has version ${version} of the trust ledger, and this version of sluice reads ${SCHEMA_VERSION}; use the version of sluice that wrote it`,
    );
}

/** Throws Corrupt if a ledger is damaged or has other tables than this version makes. */
export function checkLedgerContent(database: DatabaseSync, path: string): void {
  checkLedgerSchema(database, path);
  const fail = (what: string) => new SluiceError('Corrupt', `${path} is no sound trust ledger: ${what}`);
  const [first] = database.prepare('PRAGMA integrity_check(1)').all();
  if (first?.integrity_check !== 'ok') throw fail(String(first?.integrity_check));
  const empty = new DatabaseSync(':memory:');
  try {
    empty.exec(TABLES);
    if (definitions(database) !== definitions(empty)) throw fail('its tables are not those of a trust ledger');
  } finally {
    empty.close();
  }
}

function definitions(database: DatabaseSync): string {
  const rows = database.prepare('SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name').all();
  return JSON.stringify(rows);
}

function pragma(database: DatabaseSync, name: string): unknown {
  return database.prepare(`PRAGMA ${name}`).get()?.[name];
}

function isEmpty(database: DatabaseSync): boolean {
  return database.prepare('SELECT count(*) AS n FROM sqlite_master').get()?.n === 0;
}
