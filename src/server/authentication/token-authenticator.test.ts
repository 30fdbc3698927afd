import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { bearerToken, TokenAuthenticator } from './token-authenticator.ts';
import { addToken, hashOfToken, replaceTokens } from './token-file.ts';

async function setUp() {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bearer-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, 'tokens.csv');
  const clock = new ManualClock();
  const problems: string[] = [];
  const authenticator = new TokenAuthenticator({ path, clock, onProblem: (problem) => problems.push(problem) });
  const authenticate = async (authorization: string | undefined) =>
    authenticator.authenticate({
      socket: new Socket(),
      headers: authorization === undefined ? {} : { authorization },
      headersDistinct: {},
    });
  return { folder, path, clock, problems, authenticate };
}

test('a listed token authenticates its user, and nothing else authenticates one', async () => {
  const { path, clock, authenticate } = await setUp();
  const token = await addToken(path, { user: 'anna', uid: 'u1', groups: ['ops'] }, clock);
  expect(await authenticate(`Bearer ${token}`)).toEqual({ name: 'anna', uid: 'u1', groups: ['ops'] });
  expect(await authenticate(`bearer ${token}`)).toMatchObject({ name: 'anna' });
  for (const wrong of [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    `Bearer ${token}x`,
    `Bearer ${token} x`,
    `Basic ${token}`,
    `Bearer ${hashOfToken(token)}`,
    `Bearer sha256:${hashOfToken(token)}`,
    token,
    `Bearer ${'a'.repeat(1_000_000)}`,
    'Bearer __proto__',
  ])
    expect(await authenticate(wrong)).toBeUndefined();
});

test('a token ends at its time, also while the file is not checked', async () => {
  const { path, clock, authenticate } = await setUp();
  const token = await addToken(path, { user: 'anna', lifetime: 60_000 }, clock);
  clock.advance(59_999);
  expect(await authenticate(`Bearer ${token}`)).toMatchObject({ name: 'anna' });
  clock.advance(1);
  expect(await authenticate(`Bearer ${token}`)).toBeUndefined();
});

test('a new token counts at once, an end of one or of the file within a second', async () => {
  const { path, clock, authenticate } = await setUp();
  expect(await authenticate('Bearer early')).toBeUndefined();
  const first = await addToken(path, { user: 'anna' }, clock);
  expect(await authenticate(`Bearer ${first}`)).toMatchObject({ name: 'anna' });
  const second = await replaceTokens(path, { user: 'anna' }, clock);
  clock.advance(1000);
  expect(await authenticate(`Bearer ${first}`)).toBeUndefined();
  expect(await authenticate(`Bearer ${second}`)).toMatchObject({ name: 'anna' });
  await rm(path);
  clock.advance(1000);
  expect(await authenticate(`Bearer ${second}`)).toBeUndefined();
});

test('a clock that is set back does not keep a revoked token alive', async () => {
  const { path, clock, problems, authenticate } = await setUp();
  const token = await addToken(path, { user: 'anna' }, clock);
  expect(await authenticate(`Bearer ${token}`)).toMatchObject({ name: 'anna' });
  await rm(path);
  const past = new ManualClock(clock.now() - 1_000_000);
  clock.now = () => past.now();
  clock.advance(1000);
  expect(await authenticate(`Bearer ${token}`)).toBeUndefined();
  expect(problems).toEqual([]);
});

test('lines that are invalid are reported once, without the token in them', async () => {
  const { path, clock, problems, authenticate } = await setUp();
  await writeFile(path, `my-own-token,anna,u1,"ops"\nsha256:${hashOfToken('x')},bob`);
  for (let round = 0; round < 3; round += 1) {
    expect(await authenticate('Bearer x')).toMatchObject({ name: 'bob' });
    expect(await authenticate('Bearer my-own-token')).toBeUndefined();
    clock.advance(1000);
  }
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(`${path}:1: `);
  expect(problems[0]).not.toContain('my-own-token');
});

test('a file that cannot be read is reported once, what was read before counts, and reading is tried again', async () => {
  const { path, clock, problems, authenticate } = await setUp();
  const token = await addToken(path, { user: 'anna' }, clock);
  expect(await authenticate(`Bearer ${token}`)).toMatchObject({ name: 'anna' });
  await writeFile(path, 'x'.repeat(2_000_000));
  for (let round = 0; round < 3; round += 1) {
    clock.advance(1000);
    expect(await authenticate(`Bearer ${token}`)).toMatchObject({ name: 'anna' });
  }
  expect(problems).toEqual([expect.stringContaining('at most')]);
  await writeFile(path, `sha256:${hashOfToken('y')},bob`);
  clock.advance(1000);
  expect(await authenticate(`Bearer ${token}`)).toBeUndefined();
  expect(await authenticate('Bearer y')).toMatchObject({ name: 'bob' });
});

test('many requests at once read the file once and agree', async () => {
  const { path, clock, problems, authenticate } = await setUp();
  await writeFile(path, `bad line\nsha256:${hashOfToken('x')},bob`);
  clock.advance(5000);
  const users = await Promise.all(Array.from({ length: 50 }, () => authenticate('Bearer x')));
  expect(new Set(users.map((user) => user?.name))).toEqual(new Set(['bob']));
  expect(problems).toHaveLength(1);
});

test('a bearer header is one word of token characters', () => {
  expect(bearerToken('Bearer abc.DEF-_~+/==')).toBe('abc.DEF-_~+/==');
  for (const header of ['Bearer a,Bearer b', 'Bearer a\tb', 'Bearer =', 'BearerX', ' Bearer a', 'Bearer  a'])
    expect(bearerToken(header)).toBeUndefined();
});
