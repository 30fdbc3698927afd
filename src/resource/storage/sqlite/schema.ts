import type { DatabaseSync } from 'node:sqlite';
import { SluiceError } from '../../../foundation/sluice-error.ts';

/** Raised with every change of the tables. */
const SCHEMA_VERSION = 1;

/** `SLUI`, so that another program's database is never taken for ours. */
const APPLICATION_ID = 0x534c5549;

const TABLES = `
  CREATE TABLE objects (
    topic TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    object TEXT NOT NULL,
    PRIMARY KEY (topic, key)
  ) WITHOUT ROWID;
  CREATE TABLE events (
    version INTEGER PRIMARY KEY,
    topic TEXT NOT NULL,
    at INTEGER NOT NULL,
    before TEXT,
    after TEXT
  );
  CREATE INDEX events_by_topic ON events (topic, version);
  CREATE TABLE floors (topic TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE notes (
    topic TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (topic, key)
  ) WITHOUT ROWID;
`;

/** Makes the tables of a new database, or checks that an old one is of this version. `path` is for messages. */
export function prepareSchema(database: DatabaseSync, path: string): void {
  const version = pragma(database, 'user_version');
  if (version === 0 && pragma(database, 'application_id') === 0 && isEmpty(database)) {
    database.exec(`BEGIN IMMEDIATE; ${TABLES}
      PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT;`);
    return;
  }
  checkSchema(database, path);
}

/** Throws Corrupt or Unsupported if the file is no object database of this version. */
export function checkSchema(database: DatabaseSync, path: string): void {
  if (pragma(database, 'application_id') !== APPLICATION_ID)
    throw new SluiceError('Corrupt', `${path} is not an object database of Sluice`);
  const version = pragma(database, 'user_version');
  if (version !== SCHEMA_VERSION)
    throw new SluiceError(
      'Unsupported',
      `${path} has the form ${version}, this version of sluice reads ${SCHEMA_VERSION}; use the version that wrote it`,
    );
}

function pragma(database: DatabaseSync, name: string): unknown {
  return database.prepare(`PRAGMA ${name}`).get()?.[name];
}

function isEmpty(database: DatabaseSync): boolean {
  return database.prepare('SELECT count(*) AS n FROM sqlite_master').get()?.n === 0;
}
