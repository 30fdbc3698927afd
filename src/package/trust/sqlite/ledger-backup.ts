import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { ledgerError, openLedgerDatabase } from './open-ledger-database.ts';
import { checkLedgerContent, checkLedgerSchema } from './schema.ts';

/** Returns a consistent copy of a ledger, even while other processes write it; undefined if there is none. */
export function copyLedger(path: string): Uint8Array | undefined {
  if (!existsSync(path)) return undefined;
  const copy = `${path}.${randomUUID()}.tmp`;
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
    checkLedgerSchema(database, path);
    writeFileSync(copy, '', { mode: 0o600, flag: 'wx' });
    database.prepare('VACUUM INTO ?').run(copy);
    return readFileSync(copy);
  } catch (error) {
    throw ledgerError(error, path);
  } finally {
    database?.close();
    rmSync(copy, { force: true });
  }
}

/** A checked copy of a ledger that waits to be merged. */
export interface CheckedLedger {
  /**
   * Adds what the copy knows to the ledger at the path; see `MERGE`. A ledger there that is damaged is kept `aside`, and a new one
   * made. Returns true if that happened.
   */
  mergeInto(path: string, aside: string): boolean;
  remove(): void;
}

/** Writes a copy to a new file and checks it. Throws Corrupt or Unsupported, after removing the file. */
export function checkLedgerCopy(content: Uint8Array, file: string): CheckedLedger {
  rmSync(file, { force: true });
  try {
    writeFileSync(file, content, { mode: 0o600, flag: 'wx' });
    const database = new DatabaseSync(file, { readOnly: true });
    try {
      checkLedgerContent(database, file);
    } finally {
      database.close();
    }
  } catch (error) {
    rmSync(file, { force: true });
    throw ledgerError(error, file);
  }
  return {
    mergeInto: (path, aside) => mergeInto(path, file, aside),
    remove: () => rmSync(file, { force: true }),
  };
}

function mergeInto(path: string, copy: string, aside: string): boolean {
  const { database, replaced } = openOrReplace(path, aside);
  try {
    database.prepare('ATTACH ? AS copy').run(copy);
    database.exec(MERGE);
    return replaced;
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw ledgerError(error, path);
  } finally {
    database.close();
  }
}

function openOrReplace(path: string, aside: string): { readonly database: DatabaseSync; readonly replaced: boolean } {
  try {
    return { database: openLedgerDatabase(path), replaced: false };
  } catch (error) {
    if (!isSluiceError(error, 'Corrupt')) throw error;
    for (const suffix of ['', '-wal', '-shm']) if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
    return { database: openLedgerDatabase(path), replaced: true };
  }
}

/**
 * Brings an older copy into a ledger without taking anything back: keys of either are known, one that is revoked in either is revoked,
 * and the higher marks stay.
 *
 * What happened after the copy was made is not known for a mark that comes from it. Such marks are not proven, and repositories that
 * only the copy knows are not added, so that they are seen as for the first time: draft verdicts there wait to be affirmed. The marks
 * of the copy come before all those of the ledger, so that its revocations cover no others. A mark that both have was there when the copy was
 * made: it keeps its place in the copy, whose revocations cover it as they did.
 */
const MERGE = `
  BEGIN IMMEDIATE;
  UPDATE main.marks SET position = position + (SELECT value FROM copy.counters WHERE name = 'order');
  UPDATE main.keys SET revokedOrder = revokedOrder + (SELECT value FROM copy.counters WHERE name = 'order')
    WHERE revokedOrder IS NOT NULL;
  UPDATE main.counters SET value = value + (SELECT value FROM copy.counters WHERE name = 'order') WHERE name = 'order';
  UPDATE main.keys SET (revokedAt, revokedOrder, revokedHeads) =
      (SELECT old.revokedAt, old.revokedOrder, old.revokedHeads FROM copy.keys AS old WHERE old.fingerprint = keys.fingerprint)
    WHERE revokedAt IS NULL
      AND EXISTS (SELECT 1 FROM copy.keys AS old WHERE old.fingerprint = keys.fingerprint AND old.revokedAt IS NOT NULL);
  INSERT INTO main.keys (fingerprint, position, publicKey, comment, origin, addedAt, revokedAt, revokedOrder, revokedHeads)
    SELECT fingerprint, position + (SELECT coalesce(max(position), 0) FROM main.keys), publicKey, comment, origin, addedAt,
      revokedAt, revokedOrder, revokedHeads
    FROM copy.keys WHERE fingerprint NOT IN (SELECT fingerprint FROM main.keys);
  INSERT INTO main.marks (repository, package, workspace, sequence, digest, position, proven)
    SELECT repository, package, workspace, sequence, digest, position, 0 FROM copy.marks WHERE true
    ON CONFLICT DO UPDATE SET sequence = excluded.sequence, digest = excluded.digest, position = excluded.position, proven = 0
      WHERE excluded.sequence > marks.sequence;
  UPDATE main.marks SET position = old.position FROM copy.marks AS old
    WHERE old.repository = marks.repository AND old.package = marks.package AND old.workspace = marks.workspace
      AND old.sequence = marks.sequence AND old.digest = marks.digest;
  UPDATE main.counters SET value = value + 1 WHERE name = 'keysVersion';
  COMMIT;
`;
