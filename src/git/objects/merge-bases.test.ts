import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Commit } from '../git-repository.ts';
import { mergeBases } from './merge-bases.ts';

/** Commits by name, with their parents and times in seconds. */
type History = Readonly<Record<string, readonly [time: number, ...parents: string[]]>>;

function gitOf(history: History) {
  return {
    readCommit: async (oid: string): Promise<Commit> => {
      const [time = 0, ...parents] = history[oid] ?? [];
      const committer = { name: 'a', email: 'a@example.com', time: time * 1000 };
      return { oid, tree: '', parents, author: committer, committer, message: '', signature: undefined };
    },
  };
}

function ancestors(history: History, of: string): ReadonlySet<string> {
  const found = new Set([of]);
  for (const one of found) for (const parent of (history[one] ?? []).slice(1)) found.add(`${parent}`);
  return found;
}

function expected(history: History, one: string, other: string): readonly string[] {
  const ofOther = ancestors(history, other);
  const common = [...ancestors(history, one)].filter((name) => ofOther.has(name));
  return common.filter((name) => !common.some((by) => by !== name && ancestors(history, by).has(name))).sort();
}

test('are both where each side had merged the other one', async () => {
  const history: History = {
    root: [1],
    a: [2, 'root'],
    b: [9, 'root'],
    one: [10, 'a', 'b'],
    other: [11, 'b', 'a'],
  };
  expect([...((await mergeBases(gitOf(history), 'one', 'other')) ?? [])].sort()).toEqual(['a', 'b']);
});

test('read as much of the history as is between both, however long it is', async () => {
  const history: Record<string, readonly [number, ...string[]]> = { c0: [1] };
  for (let at = 1; at < 10_000; at += 1) history[`c${at}`] = [1 + Math.floor(at / 3), `c${at - 1}`];
  Object.assign(history, { a0: [3400, 'c9990'], a1: [3401, 'a0'] });
  let reads = 0;
  const { readCommit } = gitOf(history);
  const counted = (oid: string) => {
    reads += 1;
    return readCommit(oid);
  };
  expect(await mergeBases({ readCommit: counted }, 'a1', 'c9999')).toEqual(['c9990']);
  expect(reads).toBeLessThan(40);
});

test('are unknown where the search ends before it is complete', async () => {
  const history: Record<string, readonly [number, ...string[]]> = { c0: [1], a: [2, 'c0'] };
  for (let at = 1; at < 6000; at += 1) history[`c${at}`] = [at + 1, `c${at - 1}`];
  expect(await mergeBases(gitOf(history), 'a', 'c5999')).toBeUndefined();
});

test('are all best common ancestors, whatever the clocks were', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(4), fc.array(fc.nat(), { maxLength: 2 })), { minLength: 2, maxLength: 12 }),
      async (made) => {
        const history: Record<string, readonly [number, ...string[]]> = {};
        for (const [at, [time, parents]] of made.entries()) {
          const names = at === 0 ? [] : [...new Set(parents.map((parent) => `c${parent % at}`))];
          history[`c${at}`] = [time, ...names];
        }
        const [one, other] = [`c${made.length - 1}`, `c${made.length - 2}`];
        const found = await mergeBases(gitOf(history), one, other);
        expect([...(found ?? [])].sort()).toEqual(expected(history, one, other));
      },
    ),
    { numRuns: 2000 },
  ));
