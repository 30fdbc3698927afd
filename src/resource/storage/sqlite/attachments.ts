import { DatabaseSync } from 'node:sqlite';

/** Files that go with the objects into a backup, and out of it again before it becomes a database. */
export const ATTACHMENTS_TABLE =
  'CREATE TABLE attachments (name TEXT NOT NULL PRIMARY KEY, content BLOB NOT NULL) STRICT';

export type Attachments = ReadonlyMap<string, Uint8Array>;

/** Puts files into a copy of an object database. */
export function writeAttachments(path: string, attachments: Attachments): void {
  if (attachments.size === 0) return;
  const database = new DatabaseSync(path);
  try {
    // An unfinished copy is deleted; no temporary file may remain next to a finished one.
    database.exec(`PRAGMA journal_mode = MEMORY; BEGIN; ${ATTACHMENTS_TABLE}`);
    const insert = database.prepare('INSERT INTO attachments (name, content) VALUES (?, ?)');
    for (const [name, content] of attachments) insert.run(name, content);
    database.exec('COMMIT');
  } finally {
    database.close();
  }
}

/** Removes files from a copied backup that was checked. */
export function dropAttachments(database: DatabaseSync): void {
  if (hasAttachments(database)) database.exec('DROP TABLE attachments; VACUUM;');
}

export function hasAttachments(database: DatabaseSync): boolean {
  const found = database.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'attachments'").get();
  return found !== undefined;
}
