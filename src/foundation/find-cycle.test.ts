import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findCycle } from './find-cycle.ts';

const graph = (edges: Readonly<Record<string, readonly string[]>>) => (node: string) => edges[node] ?? [];

test('the shortest cycle through a node begins and ends with it', async () => {
  expect(await findCycle('a', graph({ a: ['a'] }))).toEqual(['a', 'a']);
  expect(await findCycle('a', graph({ a: ['b', 'c'], b: ['d'], c: ['a'], d: ['a'] }))).toEqual(['a', 'c', 'a']);
  expect(await findCycle('a', graph({ a: ['b'], b: ['c'], c: ['b'] }))).toBeUndefined();
  expect(await findCycle('a', graph({}))).toBeUndefined();
});

test('a cycle is found exactly where the node can be reached from itself', async () => {
  const nodes = ['a', 'b', 'c', 'd', 'e'];
  const edges = fc.array(fc.tuple(fc.constantFrom(...nodes), fc.constantFrom(...nodes)), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(edges, async (pairs) => {
      const next = (node: string) => pairs.filter(([from]) => from === node).map(([, to]) => to);
      const reached = new Set(next('a'));
      for (const node of reached) for (const following of next(node)) reached.add(following);
      const cycle = await findCycle('a', next);
      expect(cycle !== undefined).toBe(reached.has('a'));
      if (cycle === undefined) return;
      expect([cycle.at(0), cycle.at(-1)]).toEqual(['a', 'a']);
      for (const [index, node] of cycle.slice(1).entries()) expect(next(cycle[index] ?? '')).toContain(node);
    }),
  );
});
