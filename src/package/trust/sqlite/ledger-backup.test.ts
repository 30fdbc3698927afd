import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, expect, test } from 'vitest';
import { key, raiseOf, scope } from '../ledger/trust-ledger.conformance.ts';
import { checkLedgerCopy, copyLedger } from './ledger-backup.ts';
import { SqliteTrustLedger } from './sqlite-trust-ledger.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-ledger-backup-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const newPath = () => join(folder, `trust-${++files}.sqlite`);
const AT = '2026-02-01T00:00:00Z';
const DURABLE = { durable: true };

/** A copy of a ledger that is open, made by `fill`. */
function copyOf(fill: (ledger: SqliteTrustLedger) => void): Uint8Array {
  const path = newPath();
  const ledger = SqliteTrustLedger.open({ path });
  fill(ledger);
  const copy = copyLedger(path);
  ledger.close();
  if (copy === undefined) throw new Error('no copy');
  return copy;
}

function merge(copy: Uint8Array, path: string): boolean {
  const checked = checkLedgerCopy(copy, `${path}.restoring`);
  try {
    return checked.mergeInto(path, `${path}.aside`);
  } finally {
    checked.remove();
  }
}

test('a revocation of a copy that is newer than the folder covers what it covered', () => {
  const path = newPath();
  const ledger = SqliteTrustLedger.open({ path });
  ledger.addKey(key('a'));
  ledger.raise([raiseOf('x', 3)], DURABLE);
  const older = copyLedger(path);
  ledger.revokeKey('SHA256:a', AT);
  const copy = copyLedger(path);
  ledger.close();
  if (older === undefined || copy === undefined) throw new Error('no copy');
  const folder = newPath();
  writeFileSync(folder, older);
  merge(copy, folder);
  const merged = SqliteTrustLedger.open({ path: folder });
  expect(merged.mark(scope('x'))?.order).toBe(1);
  expect(merged.keys()[0]?.revocation?.order).toBe(1);
  // What comes afterwards is not covered.
  merged.raise([raiseOf('y', 1)], DURABLE);
  expect(merged.mark(scope('y'))?.order).toBeGreaterThan(1);
  merged.close();
});

test('a copy restored into a new folder has keys and marks, of which none is proven, and no repositories', () => {
  const copy = copyOf((ledger) => {
    ledger.addKey(key('a'));
    ledger.addKey(key('b', 'added'));
    ledger.putRepository({ id: 'r1', address: 'one', mainHeads: { main: 'abc' } });
    ledger.raise([raiseOf('x', 4)], DURABLE);
    ledger.revokeKey('SHA256:a', AT);
    ledger.raise([raiseOf('y', 1)], DURABLE);
  });
  const path = newPath();
  expect(merge(copy, path)).toBe(false);
  const ledger = SqliteTrustLedger.open({ path });
  expect(ledger.keys()).toEqual([
    { ...key('a'), revocation: { at: AT, order: 1, heads: { 'r1 main': 'abc' } } },
    key('b', 'added'),
  ]);
  expect(ledger.repositories()).toEqual([]);
  expect(ledger.mark(scope('x'))).toEqual({ sequence: 4, digest: 'd4', order: 1, proven: false });
  expect(ledger.mark(scope('y'))).toMatchObject({ order: 2, proven: false });
  ledger.raise([raiseOf('z', 1)], DURABLE);
  expect(ledger.mark(scope('z'))?.order).toBe(3);
  ledger.close();
  expect(readdirSync(folder).filter((name) => name.includes('restoring'))).toEqual([]);
});

test('an older copy takes nothing back: revocations stay, and so do the higher marks', () => {
  const path = newPath();
  const ledger = SqliteTrustLedger.open({ path });
  ledger.addKey(key('a'));
  ledger.addKey(key('b'));
  ledger.putRepository({ id: 'r1', address: 'one', mainHeads: { main: 'abc' } });
  ledger.raise([raiseOf('x', 1), raiseOf('y', 1)], DURABLE);
  const copy = copyLedger(path) ?? new Uint8Array();
  ledger.raise([raiseOf('x', 5)], DURABLE);
  ledger.revokeKey('SHA256:a', AT);
  ledger.raise([raiseOf('z', 1)], DURABLE);
  const before = [ledger.repositories(), ledger.keys().map(({ fingerprint }) => fingerprint)];
  const version = ledger.keysVersion;
  expect(merge(copy, path)).toBe(false);
  expect([ledger.repositories(), ledger.keys().map(({ fingerprint }) => fingerprint)]).toEqual(before);
  ledger.addKey(key('c'));
  expect(ledger.keysVersion).not.toBe(version);
  const order = ledger.keys()[0]?.revocation?.order ?? -1;
  expect(ledger.mark(scope('x'))).toMatchObject({ sequence: 5, proven: true });
  for (const name of ['x', 'y']) expect(ledger.mark(scope(name))?.order).toBeLessThanOrEqual(order);
  expect(ledger.mark(scope('z'))?.order).toBeGreaterThan(order);
  ledger.close();
});

test('a revocation in the copy ends the trust, and covers no mark of the present ledger', () => {
  const copy = copyOf((ledger) => {
    ledger.addKey(key('a'));
    ledger.raise([raiseOf('x', 1), raiseOf('x', 2), raiseOf('x', 3)], DURABLE);
    ledger.revokeKey('SHA256:a', AT);
  });
  const path = newPath();
  const ledger = SqliteTrustLedger.open({ path });
  ledger.addKey(key('b'));
  ledger.addKey(key('a'));
  ledger.raise([raiseOf('y', 1), raiseOf('x', 1)], DURABLE);
  merge(copy, path);
  const keys = ledger.keys();
  expect(keys.map(({ fingerprint }) => fingerprint)).toEqual(['SHA256:b', 'SHA256:a']);
  const order = keys[1]?.revocation?.order ?? -1;
  expect(ledger.mark(scope('y'))?.order).toBeGreaterThan(order);
  expect(ledger.mark(scope('x'))).toMatchObject({ sequence: 3, proven: false });
  expect(ledger.mark(scope('x'))?.order).toBeLessThanOrEqual(order);
  ledger.close();
});

test('a damaged ledger is kept aside, and a damaged or foreign copy changes nothing', () => {
  const copy = copyOf((ledger) => ledger.addKey(key('a')));
  const path = newPath();
  writeFileSync(path, 'x'.repeat(9000));
  expect(merge(copy, path)).toBe(true);
  expect(existsSync(`${path}.aside`)).toBe(true);
  const foreign = new DatabaseSync(newPath());
  const named = newPath();
  foreign.exec(`CREATE TABLE keys (x TEXT); PRAGMA application_id = ${0x534c5554}; PRAGMA user_version = 1;`);
  foreign.prepare('VACUUM INTO ?').run(named);
  foreign.close();
  expect(() => merge(copyLedger(named) ?? new Uint8Array(), path)).toThrow(
    'its tables are not those of a trust ledger',
  );
  expect(() => merge(copy.slice(0, 5000), path)).toThrow(/damaged|malformed|no sound/);
  expect(() => merge(new Uint8Array(), path)).toThrow('is not a trust ledger');
  const ledger = SqliteTrustLedger.open({ path });
  expect(ledger.keys()).toEqual([key('a')]);
  ledger.close();
  expect(readdirSync(folder).filter((name) => name.includes('restoring') || name.includes('tmp'))).toEqual([]);
  expect(copyLedger(newPath())).toBeUndefined();
});
