import { rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

/**
 * The floor for writes of objects: rows per second that SQLite writes with the same journal and full sync, with a given number of rows for each
 * transaction. The texts are prepared, nothing is checked, and no watcher is notified.
 */
export function rawInserts(path: string, texts: readonly string[], batch: number): number {
  const database = new DatabaseSync(path);
  try {
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 2000;');
    database.exec('CREATE TABLE rows (key TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID');
    const insert = database.prepare('INSERT INTO rows (key, text) VALUES (?, ?)');
    const started = performance.now();
    for (let at = 0; at < texts.length; at += batch) {
      database.exec('BEGIN IMMEDIATE');
      for (let row = at; row < Math.min(at + batch, texts.length); row++) insert.run(`row-${row}`, texts[row] ?? '');
      database.exec('COMMIT');
    }
    return (1000 * texts.length) / (performance.now() - started);
  } finally {
    database.close();
    for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
  }
}
