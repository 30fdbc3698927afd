import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Commit } from '../git-repository.ts';
import { mergeBase } from './merge-base.ts';

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

test('of a branch on top of one that was merged, the head of the latter, whatever the clocks of the host and the users were', async () => {
  for (const mergedAt of [0, 5, 9]) {
    const history: History = {
      root: [1],
      start: [5, 'root'],
      first: [5, 'start'],
      second: [5, 'first'],
      merge: [mergedAt, 'start', 'first'],
    };
    expect(await mergeBase(gitOf(history), 'merge', 'second')).toBe('first');
    expect(await mergeBase(gitOf(history), 'second', 'merge')).toBe('first');
  }
});

test('is found among commits of the same time without a walk to the first one', async () => {
  const history: Record<string, readonly [number, ...string[]]> = { c0: [1] };
  for (let at = 1; at < 200; at += 1) history[`c${at}`] = [1, `c${at - 1}`];
  Object.assign(history, { a0: [1, 'c190'], a1: [1, 'a0'], a2: [1, 'a1'] });
  const { readCommit } = gitOf(history);
  for (const [one, other, base] of [
    ['a2', 'c191', 'c190'],
    ['a2', 'c199', 'c190'],
    ['c199', 'c190', 'c190'],
  ] as const) {
    let reads = 0;
    const counted = (oid: string) => {
      reads += 1;
      return readCommit(oid);
    };
    expect(await mergeBase({ readCommit: counted }, one, other)).toBe(base);
    expect(reads).toBeLessThan(40);
  }
});

test('no other common commit contains it, where no commit is older than its parents', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(1), fc.array(fc.nat(), { maxLength: 2 })), { minLength: 2, maxLength: 14 }),
      async (made) => {
        const history: Record<string, readonly [number, ...string[]]> = {};
        for (const [at, [later, parents]] of made.entries()) {
          const names = at === 0 ? [] : [...new Set(parents.map((parent) => `c${parent % at}`))];
          const time = Math.max(0, ...names.map((name) => history[name]?.[0] ?? 0)) + later;
          history[`c${at}`] = [time, ...names];
        }
        const [one, other] = [`c${made.length - 1}`, `c${made.length - 2}`];
        const ofOther = ancestors(history, other);
        const common = [...ancestors(history, one)].filter((name) => ofOther.has(name));
        const best = common.filter((name) => !common.some((by) => by !== name && ancestors(history, by).has(name)));
        const found = await mergeBase(gitOf(history), one, other);
        if (best.length === 0) expect(found).toBeUndefined();
        else expect(best).toContain(found);
      },
    ),
    { numRuns: 2000 },
  ));
