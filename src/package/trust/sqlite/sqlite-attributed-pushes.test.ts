import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, expect, test } from 'vitest';
import { type AttributedPush, type KeptPush, MAX_PUSHES_OF_REF } from '../ledger/attributed-pushes.ts';
import { SqliteAttributedPushes } from './sqlite-attributed-pushes.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-pushes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const PUSH: AttributedPush = {
  ...{ repository: 'r1', registration: 'default/apps', ref: 'refs/heads/drafts/app/v1' },
  ...{ before: undefined, after: 'a'.repeat(40), user: 'octo', provider: 'github', at: '2026-01-01T00:00:00Z' },
};

const kept = (push: AttributedPush, isSuperseded = false): KeptPush => ({ ...push, isSuperseded });

test('what one process notes another one finds, for the same branch of the same registration of the same repository', () => {
  const path = join(folder, 'shared.sqlite');
  const [one, other] = [new SqliteAttributedPushes(path), new SqliteAttributedPushes(path)];
  expect(other.latest(PUSH)).toEqual([]);
  one.note(PUSH);
  const next = { ...PUSH, before: PUSH.after, after: 'b'.repeat(40) };
  one.note(next);
  one.close();
  expect(other.latest(PUSH)).toEqual([kept(next), kept(PUSH)]);
  for (const place of [{ repository: 'r2' }, { registration: 'team/apps' }, { ref: 'refs/heads/drafts/app/v2' }])
    expect(other.latest({ ...PUSH, ...place })).toEqual([]);
  other.close();
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('the same report again changes nothing, and of many the oldest make way', () => {
  const pushes = new SqliteAttributedPushes(':memory:');
  for (let count = 0; count < 3; count += 1) pushes.note({ ...PUSH, at: `2026-01-0${count + 1}T00:00:00Z` });
  expect(pushes.latest(PUSH)).toEqual([kept(PUSH)]);
  const elsewhere = { ...PUSH, ref: 'refs/heads/drafts/other/v1' };
  pushes.note(elsewhere);
  for (let count = 0; count < MAX_PUSHES_OF_REF + 5; count += 1) pushes.note({ ...PUSH, user: `user-${count}` });
  const left = pushes.latest(PUSH);
  expect([left.length, left[0]?.user, left.at(-1)?.user]).toEqual([
    MAX_PUSHES_OF_REF,
    `user-${MAX_PUSHES_OF_REF + 4}`,
    'user-5',
  ]);
  expect(pushes.latest(elsewhere)).toEqual([kept(elsewhere)]);
  pushes.close();
});

test('a report before a deletion is superseded, and the same report after it is another push', () => {
  const path = join(folder, 'deleted.sqlite');
  const pushes = new SqliteAttributedPushes(path);
  pushes.supersede(PUSH, [PUSH.ref]);
  expect(existsSync(path)).toBe(false);
  const elsewhere = [{ ref: 'refs/heads/drafts/b/v1' }, { registration: 'team/apps' }, { repository: 'r2' }];
  for (const place of [{}, ...elsewhere]) pushes.note({ ...PUSH, ...place });
  pushes.supersede(PUSH, [PUSH.ref]);
  expect(pushes.latest(PUSH)).toEqual([kept(PUSH, true)]);
  for (const place of elsewhere) expect(pushes.latest({ ...PUSH, ...place })).toEqual([kept({ ...PUSH, ...place })]);
  pushes.note(PUSH);
  expect(pushes.latest(PUSH)).toEqual([kept(PUSH), kept(PUSH, true)]);
  pushes.close();
});

test('a file of an earlier version is read, and its reports count', () => {
  const path = join(folder, 'earlier.sqlite');
  const pushes = new SqliteAttributedPushes(path);
  pushes.note(PUSH);
  pushes.close();
  const database = new DatabaseSync(path);
  database.exec('ALTER TABLE pushes DROP COLUMN superseded');
  database.close();
  expect(pushes.latest(PUSH)).toEqual([kept(PUSH)]);
  pushes.close();
});

test('a damaged file is an error with the next step', () => {
  const path = join(folder, 'damaged.sqlite');
  writeFileSync(path, 'x'.repeat(5000));
  const pushes = new SqliteAttributedPushes(path);
  expect(() => pushes.latest(PUSH)).toThrow(
    /damaged\.sqlite: .*; if the file is damaged, remove it: pushes without a report/,
  );
  rmSync(path);
  expect(pushes.latest(PUSH)).toEqual([]);
  // Also where it was in use when it was damaged.
  const other = new DatabaseSync(path);
  other.exec('DROP TABLE pushes');
  other.close();
  expect(() => pushes.latest(PUSH)).toThrow('remove it');
  rmSync(path);
  pushes.note(PUSH);
  expect(pushes.latest(PUSH)).toEqual([kept(PUSH)]);
  pushes.close();
});
