import { DatabaseSync } from 'node:sqlite';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { ATTACHMENTS_TABLE } from './attachments.ts';
import { prepareSchema } from './schema.ts';

/** Deeper objects are of no kind, and a walk over them would end the process. */
const MAX_DEPTH = 200;

/**
 * Throws Corrupt if a database is damaged or contains anything but objects in the format of this version. `path` is for
 * messages.
 */
export function checkBackup(database: DatabaseSync, path: string): void {
  const fail = (what: string) =>
    new SluiceError('Corrupt', `${path} is not a valid backup: ${what}; use another one (nothing was changed)`);
  const [first] = database.prepare('PRAGMA integrity_check(1)').all();
  if (first?.integrity_check !== 'ok') throw fail(String(first?.integrity_check));
  if (definitions(database) !== expectedDefinitions()) throw fail('its tables are not those of an object database');
  const reserved = database.prepare("SELECT value FROM settings WHERE name = 'reservedVersion'").get()?.value ?? '0';
  if (!/^\d{1,15}$/.test(String(reserved))) throw fail('its last version is no number');
  const rows = database.prepare('SELECT topic, key, version, object FROM objects').iterate();
  for (const { topic, key, version, object } of rows)
    if (typeof version !== 'number' || version < 0 || !isObject(object))
      throw fail(`${JSON.stringify(`${topic} ${key}`.slice(0, 200))} is no object`);
}

function definitions(database: DatabaseSync): string {
  // Tables that SQLite makes for itself have no text.
  const rows = database.prepare('SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name').all();
  return JSON.stringify(rows.filter(({ sql }) => sql !== ATTACHMENTS_TABLE));
}

function expectedDefinitions(): string {
  const empty = new DatabaseSync(':memory:');
  try {
    prepareSchema(empty, ':memory:');
    return definitions(empty);
  } finally {
    empty.close();
  }
}

function isObject(text: unknown): boolean {
  let value: unknown;
  try {
    value = JSON.parse(String(text));
  } catch {
    return false;
  }
  const { apiVersion, kind, metadata } = (value ?? {}) as Record<string, unknown>;
  const { name, uid, resourceVersion } = (metadata ?? {}) as Record<string, unknown>;
  const texts = [apiVersion, kind, name, uid, resourceVersion];
  return texts.every((one) => typeof one === 'string') && isShallow(value, MAX_DEPTH);
}

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1));
}
