import { expect, test } from 'vitest';
import { type BatchCandidate, MAX_WAIT_MS, planBatches, QUIET_MS } from './plan-batches.ts';

const NOW = 1_000_000_000;

/** A candidate that has waited long enough. */
function candidate(proposal: string, more: Partial<BatchCandidate> = {}): BatchCandidate {
  const seenMs = NOW - QUIET_MS;
  return {
    ...{ proposal, name: `apps.${proposal}.v1`, path: proposal, policy: 'review', maxPackages: 3 },
    ...{ at: '2026-01-01T00:00:00Z', seenMs },
    ...more,
  };
}

/** By branch, the proposals in their order. */
function plan(
  candidates: readonly BatchCandidate[],
  open: Readonly<Record<string, readonly string[]>> = {},
): { readonly batches: Readonly<Record<string, readonly string[]>>; readonly waitMs?: number } {
  const pulls = Object.entries(open).map(([branch, proposals]) => ({ branch, proposals }));
  const { batches, ...rest } = planBatches(candidates, pulls, (founder) => `of-${founder}`, NOW);
  const entries = batches.map(({ branch, members }) => [branch, members.map(({ proposal }) => proposal)] as const);
  return { batches: Object.fromEntries(entries), ...rest };
}

test('the first one by time founds a pull request, whatever the order in which a process read them', () => {
  const all = [
    candidate('c'),
    candidate('b', { at: '2026-01-01T00:00:01Z' }),
    candidate('a', { at: '2026-01-01T00:00:01Z' }),
  ];
  const wanted = { 'of-c': ['c', 'a', 'b'] };
  expect(plan(all).batches).toEqual(wanted);
  expect(plan(all.toReversed()).batches).toEqual(wanted);
});

test('a proposal stays where it is listed, also in one that is full; new ones fill the room that is left', () => {
  const all = ['a', 'b', 'c', 'd', 'e'].map((one) => candidate(one, { maxPackages: 2 }));
  expect(plan(all, { first: ['a', 'b', 'c'], second: ['d'] }).batches).toEqual({
    first: ['a', 'b', 'c'],
    second: ['d', 'e'],
  });
  expect(plan([candidate('a')], { first: ['gone'], second: [] }).batches).toEqual({
    first: [],
    second: [],
    'of-a': ['a'],
  });
  // Listed twice, it counts once.
  expect(plan([candidate('a')], { first: ['a'], second: ['a'] }).batches).toEqual({ first: ['a'], second: [] });
});

test('no pull request has two proposals of a package, or proposals of two policies', () => {
  const all = [
    candidate('a', { path: 'web' }),
    candidate('b', { path: 'web' }),
    candidate('c', { policy: 'other' }),
    candidate('d'),
  ];
  expect(plan(all).batches).toEqual({ 'of-a': ['a', 'd'], 'of-b': ['b'], 'of-c': ['c'] });
  expect(plan(all, { first: ['a', 'b'] }).batches).toEqual({ first: ['a', 'd'], 'of-b': ['b'], 'of-c': ['c'] });
});

test('new ones wait until none came for a while, a bounded time, and not for more than there is room for', () => {
  const seen = (proposal: string, ago: number) => candidate(proposal, { seenMs: NOW - ago });
  expect(plan([seen('a', 1000), seen('b', 2000)])).toEqual({ batches: {}, waitMs: QUIET_MS - 1000 });
  expect(plan([seen('a', 0), seen('b', MAX_WAIT_MS - 1)])).toEqual({ batches: {}, waitMs: 1 });
  expect(plan([seen('a', 0), seen('b', MAX_WAIT_MS)])).toEqual({ batches: { 'of-a': ['a', 'b'] } });
  expect(plan([seen('a', 0), seen('b', 0), seen('c', 0)])).toEqual({ batches: { 'of-a': ['a', 'b', 'c'] } });
  // Those of another policy, and those that have a place, are not held up.
  expect(plan([seen('a', 0), candidate('b', { policy: 'other' }), seen('c', 0)], { first: ['c'] })).toEqual({
    batches: { first: ['c'], 'of-b': ['b'] },
    waitMs: QUIET_MS,
  });
});
