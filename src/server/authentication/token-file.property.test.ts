import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { addToken, hashOfToken, MAX_TOKEN_FILE_BYTES, parseTokenFile, replaceTokens } from './token-file.ts';

const folder = await mkdtemp(join(tmpdir(), 'sluice-tokens-'));
afterAll(() => rm(folder, { recursive: true }));

const A = hashOfToken('a');
const B = hashOfToken('b');

function parse(text: string) {
  const problems: string[] = [];
  const entries = parseTokenFile('tokens.csv', text, (problem) => problems.push(problem));
  return { entries, problems };
}

async function entriesOf(path: string) {
  return parse(await readFile(path, 'utf8')).entries;
}

test('lines with and without uid, groups and expiry', () => {
  const { entries, problems } = parse(
    [
      '# people',
      '',
      `sha256:${A},anna,u1,"ops, dev,ops",2030-01-31T00:00:00+01:00`,
      `sha256:${B.toUpperCase()},bob\r`,
      `sha256:${hashOfToken('c')},carl,,ops`,
      ` sha256:${hashOfToken('d')} , dora,,"",`,
    ].join('\n'),
  );
  expect(problems).toEqual([]);
  expect(entries).toEqual([
    { hash: A, user: { name: 'anna', uid: 'u1', groups: ['ops', 'dev'] }, expires: Date.UTC(2030, 0, 30, 23) },
    { hash: B, user: { name: 'bob', groups: [] }, expires: undefined },
    { hash: hashOfToken('c'), user: { name: 'carl', groups: ['ops'] }, expires: undefined },
    { hash: hashOfToken('d'), user: { name: 'dora', groups: [] }, expires: undefined },
  ]);
});

test.each([
  ['a token in plain text', 'secret-token,anna,u1,"ops"', 'not the token'],
  ['a hash that is too short', `sha256:${A.slice(1)},anna`, '64 hex digits'],
  ['no user', `sha256:${A},,u1`, 'user name'],
  ['no fields', 'anna', 'expected sha256'],
  ['an open quote', `sha256:${A},anna,u1,"ops`, 'expected sha256'],
  ['too many fields', `sha256:${A},anna,u1,"ops",,x`, 'expected sha256'],
  ['an expiry that is no time', `sha256:${A},anna,u1,"ops",soon`, 'RFC 3339'],
  ['an expiry without a zone', `sha256:${A},anna,u1,"ops",2030-01-31T00:00:00`, 'RFC 3339'],
  ['an expiry that no calendar has', `sha256:${A},anna,u1,"ops",2030-13-31T00:00:00Z`, 'RFC 3339'],
  ['a control character', `sha256:${A},an\u0007na,u1`, 'user name'],
  ['a long line', `sha256:${A},${'a'.repeat(5000)}`, 'at most'],
])('%s is ignored and reported by its line number, without its text', (_name, line, problem) => {
  const { entries, problems } = parse(`# first\n${line}\nsha256:${B},bob`);
  expect(entries.map((entry) => entry.user.name)).toEqual(['bob']);
  expect(problems).toEqual([expect.stringMatching(/^tokens\.csv:2: /)]);
  expect(problems[0]).toContain(problem);
  expect(problems[0]).not.toContain('secret-token');
  expect(problems[0]).not.toContain(A.slice(1));
});

test('the first of two lines for one token counts', () => {
  const { entries, problems } = parse(`sha256:${A},anna\nsha256:${A},admin,,"system:masters"`);
  expect(entries.map((entry) => entry.user.name)).toEqual(['anna']);
  expect(problems).toEqual([expect.stringContaining('tokens.csv:2: the token is listed twice')]);
});

test('any text is read without an error, in time', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      expect(parse(text).entries.every((entry) => entry.hash.length === 64)).toBe(true);
    }),
    { numRuns: runs(100) },
  );
  expect(parse('"'.repeat(4000)).problems).toHaveLength(1);
  expect(parse(`${','.repeat(4000)}"`).problems).toHaveLength(1);
});

test('an added token is kept as a hash only, in a file for its owner only', async () => {
  const path = join(folder, 'added.csv');
  const clock = new ManualClock();
  const token = await addToken(path, { user: 'anna', groups: ['ops', 'dev'], lifetime: 60_000 }, clock);
  expect(token).toMatch(/^sluice_[\w-]{43}$/);
  const text = await readFile(path, 'utf8');
  expect(text).not.toContain(token);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(parse(text).entries).toEqual([
    { hash: hashOfToken(token), user: { name: 'anna', groups: ['ops', 'dev'] }, expires: clock.now() + 60_000 },
  ]);
});

test('adding takes expired tokens out and leaves the rest, comments and foreign lines too', async () => {
  const path = join(folder, 'pruned.csv');
  const clock = new ManualClock();
  await writeFile(path, `# mine\nnot understood\nsha256:${A},anna,,"ops",2020-01-01T00:00:00Z\nsha256:${B},bob`);
  await addToken(path, { user: 'carl' }, clock);
  const text = await readFile(path, 'utf8');
  expect(text).toMatch(/^# mine\nnot understood\nsha256:.*,bob\nsha256:.*,carl,,""\n$/);
});

test('replacing forgets the other tokens of that user alone', async () => {
  const path = join(folder, 'replaced.csv');
  const clock = new ManualClock();
  await addToken(path, { user: 'anna' }, clock);
  await addToken(path, { user: 'bob' }, clock);
  const token = await replaceTokens(path, { user: 'anna', groups: ['ops'] }, clock);
  const entries = await entriesOf(path);
  expect(entries.map((entry) => entry.user.name)).toEqual(['bob', 'anna']);
  expect(entries[1]?.hash).toBe(hashOfToken(token));
});

test('tokens that are added at the same time are all there', async () => {
  const path = join(folder, 'together.csv');
  const clock = new ManualClock();
  const tokens = await Promise.all(['a', 'b', 'c', 'd'].map((user) => addToken(path, { user }, clock)));
  expect(new Set((await entriesOf(path)).map((entry) => entry.hash))).toEqual(new Set(tokens.map(hashOfToken)));
});

test('what a line cannot hold is refused', async () => {
  const path = join(folder, 'refused.csv');
  const clock = new ManualClock();
  for (const request of [
    { user: '' },
    { user: 'a,b' },
    { user: 'a\nsha256:x' },
    { user: 'a"b' },
    { user: 'anna', groups: ['ops,system:masters'] },
    { user: 'anna', groups: [''] },
    { user: 'anna', uid: '1,2' },
    { user: 'anna', lifetime: 0 },
    { user: 'anna', lifetime: Number.NaN },
    { user: 'anna', lifetime: 1e18 },
    { user: 'a'.repeat(5000) },
  ])
    await expect(addToken(path, request, clock)).rejects.toMatchObject({ code: 'InvalidInput' });
  await writeFile(path, `# ${'x'.repeat(MAX_TOKEN_FILE_BYTES - 10)}`);
  await expect(addToken(path, { user: 'anna' }, clock)).rejects.toMatchObject({ code: 'LimitExceeded' });
});
