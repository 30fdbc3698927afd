import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { headAmong, headOf } from '../ledger/main-heads.ts';
import { describeTrustLedger, key, raiseOf, scope } from '../ledger/trust-ledger.conformance.ts';
import type { Mark, NewMark } from '../ledger/trust-ledger.ts';
import { SqliteTrustLedger } from './sqlite-trust-ledger.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-ledger-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const newPath = () => join(folder, `trust-${++files}.sqlite`);
const DURABLE = { durable: true };
const SOON = { durable: false };

describe('SqliteTrustLedger', () => {
  describeTrustLedger(() => SqliteTrustLedger.open({ path: newPath() }));
});

test('everything outlives the process, for the owner of the file only', () => {
  const path = newPath();
  const first = SqliteTrustLedger.open({ path });
  first.addKey(key('a'));
  first.addKey(key('b', 'added'));
  first.putRepository({ id: 'r1', address: 'one', mainHeads: { main: 'abc' } });
  first.raise([raiseOf('x', 5, 'd', false)], SOON);
  first.revokeKey('SHA256:a', '2026-02-01T00:00:00Z');
  first.raise([raiseOf('y', 1)], SOON);
  const seen = [first.keys(), first.repositories(), first.mark(scope('x')), first.mark(scope('y'))];
  first.close();
  first.close();
  expect(() => first.mark(scope('x'))).toThrow(/is closed$/);
  for (const suffix of ['', '-wal', '-shm']) {
    const second = SqliteTrustLedger.open({ path });
    expect(statSync(path + suffix).mode & 0o777).toBe(0o600);
    expect([second.keys(), second.repositories(), second.mark(scope('x')), second.mark(scope('y'))]).toEqual(seen);
    second.close();
  }
});

/** More than are written at once. */
function many(name: string, sequence: number): NewMark[] {
  return [raiseOf(name, sequence), ...Array.from({ length: 300 }, (_, index) => raiseOf(`other-${index}`, sequence))];
}

test('other processes read a mark that need not be durable at once', () => {
  const path = newPath();
  const [one, two] = [SqliteTrustLedger.open({ path }), SqliteTrustLedger.open({ path })];
  one.raise([raiseOf('x', 1)], SOON);
  expect(two.mark(scope('x'))).toEqual(one.mark(scope('x')));
  one.close();
  two.close();
});

test('marks that another process raises may be any, and what it proves too', () => {
  const path = newPath();
  const [one, two] = [SqliteTrustLedger.open({ path }), SqliteTrustLedger.open({ path })];
  one.raise([raiseOf('x', 1, 'd', false)], SOON);
  let { version } = one.raisedSince(0);
  for (const entry of [raiseOf('x', 1, 'd', true), raiseOf('y', 1)]) {
    two.raise([entry], SOON);
    const raised = one.raisedSince(version);
    expect(raised.scopes).toBeUndefined();
    version = raised.version;
    expect(one.raisedSince(version).scopes).toEqual([]);
  }
  one.close();
  two.close();
});

test('a revocation by another process covers the main branch as it was noted last', () => {
  const path = newPath();
  const [one, two] = [SqliteTrustLedger.open({ path }), SqliteTrustLedger.open({ path })];
  one.addKey(key('a'));
  one.putRepository({ id: 'r1', address: 'one', mainHeads: { main: 'before' } });
  one.noteMain('r1', 'main', 'after');
  two.revokeKey('SHA256:a', '2026-02-01T00:00:00Z');
  expect(one.keys()[0]?.revocation?.heads).toEqual({ 'r1 main': 'after' });
  one.close();
  two.close();
});

test('a head that an earlier version noted counts for any branch, until the head of a branch is noted', () => {
  const path = newPath();
  const first = SqliteTrustLedger.open({ path });
  first.addKey(key('a'));
  first.addKey(key('b'));
  first.putRepository({ id: 'r1', address: 'one', mainHeads: {} });
  first.close();
  const database = new DatabaseSync(path);
  database.exec("UPDATE repositories SET mainHead = 'abc'");
  database.close();
  const ledger = SqliteTrustLedger.open({ path });
  const heads = () => ['main', 'other'].map((branch) => headOf(ledger.repository('r1')?.mainHeads ?? {}, branch));
  expect(heads()).toEqual(['abc', 'abc']);
  ledger.revokeKey('SHA256:a', '2026-02-01T00:00:00Z');
  ledger.noteMain('r1', 'main', 'def');
  expect(heads()).toEqual(['def', undefined]);
  ledger.revokeKey('SHA256:b', '2026-02-01T00:00:00Z');
  const revoked = ledger
    .keys()
    .map(({ revocation }) => ['main', 'other'].map((branch) => headAmong(revocation?.heads ?? {}, 'r1', branch)));
  expect(revoked).toEqual([
    ['abc', 'abc'],
    ['def', undefined],
  ]);
  ledger.close();
});

test('many marks that need not be durable reach others within a second, before what is durable, and at the end', () => {
  const path = newPath();
  const clock = new ManualClock();
  const [one, two] = [SqliteTrustLedger.open({ path, clock }), SqliteTrustLedger.open({ path, clock })];
  one.raise(many('x', 1), SOON);
  expect(one.mark(scope('x'))).toMatchObject({ sequence: 1 });
  expect(two.mark(scope('x'))).toBeUndefined();
  clock.advance(1000);
  expect(two.mark(scope('x'))).toEqual(one.mark(scope('x')));
  one.raise([raiseOf('x', 2)], SOON);
  one.raise([raiseOf('y', 1)], DURABLE);
  expect(two.mark(scope('x'))).toMatchObject({ sequence: 2 });
  expect(two.mark(scope('x'))?.order).toBeLessThan(two.mark(scope('y'))?.order ?? 0);
  one.raise([raiseOf('x', 3)], SOON);
  one.putRepository({ id: 'r1', address: 'one', mainHeads: {} });
  expect(two.mark(scope('x'))).toMatchObject({ sequence: 3 });
  one.raise([raiseOf('x', 4)], SOON);
  one.close();
  expect(two.mark(scope('x'))).toMatchObject({ sequence: 4 });
  expect(clock.pending).toBe(0);
  two.close();
});

test('a pending mark never reverts the write of another process, and follows a revocation there', () => {
  const path = newPath();
  const [one, two] = [SqliteTrustLedger.open({ path }), SqliteTrustLedger.open({ path })];
  one.addKey(key('a'));
  one.raise([...many('x', 3), raiseOf('y', 3)], SOON);
  two.raise([raiseOf('x', 5)], DURABLE);
  two.revokeKey('SHA256:a', '2026-02-01T00:00:00Z');
  const order = one.keys()[0]?.revocation?.order ?? -1;
  const waiting = one.mark(scope('y'))?.order;
  expect(waiting).toBeGreaterThan(order);
  expect(one.mark(scope('x'))).toMatchObject({ sequence: 5 });
  one.raise([], DURABLE);
  expect(two.mark(scope('x'))).toMatchObject({ sequence: 5 });
  expect(two.mark(scope('y'))?.order).toBe(waiting);
  one.close();
  two.close();
});

test('a change of the keys by another process is detected, and other writes are not reported', () => {
  const path = newPath();
  const clock = new ManualClock();
  const [one, two] = [SqliteTrustLedger.open({ path, clock }), SqliteTrustLedger.open({ path, clock })];
  const before = two.keysVersion;
  one.raise([raiseOf('x', 1)], DURABLE);
  clock.advance(1000);
  expect(two.keysVersion).toBe(before);
  one.addKey(key('a'));
  clock.advance(100);
  const added = two.keysVersion;
  expect(added).not.toBe(before);
  expect(two.keys()).toEqual([key('a')]);
  two.revokeKey('SHA256:a', '2026-02-01T00:00:00Z');
  expect(two.keysVersion).not.toBe(added);
  one.close();
  two.close();
});

test('what cannot be written is reported, waits, and is written later', () => {
  const path = newPath();
  const clock = new ManualClock();
  const errors: unknown[] = [];
  const ledger = SqliteTrustLedger.open({ path, clock, onError: (error) => errors.push(error) });
  // A trigger of SQLite stands for a full disk.
  const other = new DatabaseSync(path);
  other.exec("CREATE TRIGGER full BEFORE INSERT ON marks BEGIN SELECT RAISE(ABORT, 'disk full'); END");
  ledger.raise([raiseOf('x', 1)], SOON);
  clock.advance(1000);
  expect(errors).toEqual([
    expect.objectContaining({ code: 'Unavailable', message: expect.stringMatching(/disk full/) }),
  ]);
  expect(() => ledger.raise([raiseOf('y', 1)], DURABLE)).toThrow(/^cannot use the trust ledger .*: disk full$/);
  expect(ledger.mark(scope('y'))).toBeUndefined();
  expect(ledger.mark(scope('x'))).toMatchObject({ sequence: 1 });
  other.exec('DROP TRIGGER full');
  other.close();
  clock.advance(1000);
  ledger.close();
  const again = SqliteTrustLedger.open({ path });
  expect(again.mark(scope('x'))).toMatchObject({ sequence: 1 });
  again.close();
});

test('a durable raise changes all marks or none', () => {
  const path = newPath();
  const ledger = SqliteTrustLedger.open({ path });
  const other = new DatabaseSync(path);
  other.exec(
    "CREATE TRIGGER no BEFORE INSERT ON marks WHEN NEW.package = 'folder/y' BEGIN SELECT RAISE(ABORT, 'no'); END",
  );
  other.close();
  expect(() => ledger.raise([raiseOf('x', 1), raiseOf('y', 1)], DURABLE)).toThrow('no');
  expect(ledger.mark(scope('x'))).toBeUndefined();
  ledger.close();
});

test('another file is refused with what to do', () => {
  const path = newPath();
  writeFileSync(path, 'something else, of some length: it is no database');
  expect(() => SqliteTrustLedger.open({ path })).toThrow(/is damaged: .*; bring a backup back with "sluice restore"$/);
  const foreign = newPath();
  new DatabaseSync(foreign).exec('CREATE TABLE objects (topic TEXT)');
  expect(() => SqliteTrustLedger.open({ path: foreign })).toThrow('is not a trust ledger of Sluice');
  const newer = newPath();
  SqliteTrustLedger.open({ path: newer }).close();
  new DatabaseSync(newer).exec('PRAGMA user_version = 2');
  expect(() => SqliteTrustLedger.open({ path: newer })).toThrow(
    /has version 2 .* use the version of sluice that wrote it$/,
  );
  expect(() => SqliteTrustLedger.open({ path: join(folder, 'none', 'trust.sqlite') })).toThrow(
    /^cannot use the trust ledger/,
  );
});

/** A step of the random test: what one of two processes does. */
const steps = fc.oneof(
  fc.record({
    act: fc.constant('raise' as const),
    by: fc.nat(1),
    durable: fc.boolean(),
    entries: fc.array(
      fc.record({
        name: fc.constantFrom('x', 'y', 'z'),
        sequence: fc.nat(6),
        digest: fc.constantFrom('a', 'b'),
        proven: fc.boolean(),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  }),
  fc.record({ act: fc.constant('pass' as const), by: fc.nat(1) }),
  fc.record({ act: fc.constant('reopen' as const), by: fc.nat(1) }),
  fc.record({ act: fc.constant('revoke' as const), by: fc.nat(1) }),
);

test('marks of two processes never decrease, and end at the highest one', () => {
  const names = ['x', 'y', 'z'];
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 25 }), (list) => {
      const path = newPath();
      const clock = new ManualClock();
      const open = () => SqliteTrustLedger.open({ path, clock });
      const ledgers = [open(), open()];
      const ledgerOf = (by: number) => ledgers[by] as SqliteTrustLedger;
      const seen: Map<string, Mark>[] = [new Map(), new Map()];
      const highest = new Map<string, number>();
      ledgerOf(0).addKey(key('a'));
      const look = (by: number) => {
        for (const name of names) {
          const mark = ledgerOf(by).mark(scope(name));
          const before = seen[by]?.get(name);
          if (before !== undefined) {
            expect(mark?.sequence).toBeGreaterThanOrEqual(before.sequence);
            if (mark?.sequence === before.sequence && mark.digest === before.digest) {
              expect(Number(mark.proven)).toBeGreaterThanOrEqual(Number(before.proven));
            }
          }
          if (mark !== undefined) seen[by]?.set(name, mark);
        }
      };
      for (const step of list) {
        const ledger = ledgerOf(step.by);
        if (step.act === 'raise') {
          const entries = step.entries.map(({ name, ...mark }) => ({ scope: scope(name), ...mark }));
          ledger.raise(entries, { durable: step.durable });
          for (const { name, sequence } of step.entries) highest.set(name, Math.max(sequence, highest.get(name) ?? 0));
        } else if (step.act === 'pass') clock.advance(300);
        else if (step.act === 'revoke') ledger.revokeKey('SHA256:a', '2026-02-01T00:00:00Z');
        else {
          ledger.close();
          ledgers[step.by] = open();
        }
        look(0);
        look(1);
      }
      for (const ledger of ledgers) ledger.close();
      const end = open();
      expect(names.map((name) => end.mark(scope(name))?.sequence)).toEqual(names.map((name) => highest.get(name)));
      const orders = names.flatMap((name) => end.mark(scope(name))?.order ?? []);
      expect(new Set(orders).size).toBe(orders.length);
      end.close();
    }),
    { numRuns: runs(20, 5) },
  );
});
