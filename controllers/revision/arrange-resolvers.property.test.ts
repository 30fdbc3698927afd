import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Resolver } from '../../src/package/plan/ports/resolver.ts';
import { runs } from '../../test/support/runs.ts';
import { applicableResolvers, arrangeResolvers, patternsOverlap } from './arrange-resolvers.ts';
import { draftOf, resolverOf } from './testing.ts';
import { subjectOf } from './working-package.ts';

const resolver = (name: string, claims: string[], waitsFor: string[] = []): Resolver =>
  resolverOf(name, () => ({}), { claims, waitsFor });
const names = (resolvers: readonly Resolver[]) => resolvers.map(({ name }) => name);

describe('arrangeResolvers', () => {
  test('a resolver runs after all that it waits for, others by name', () => {
    const given = [
      resolver('a', ['A'], ['z/*']),
      resolver('y', ['z/y'], ['M']),
      resolver('m', ['M']),
      resolver('b', ['B']),
    ];
    expect(names(arrangeResolvers(given).order)).toEqual(['b', 'm', 'y', 'a']);
    expect(names(arrangeResolvers(given.toReversed()).order)).toEqual(['b', 'm', 'y', 'a']);
  });

  test('a cycle is reported; a resolver that only waits for it runs', () => {
    const given = [
      resolver('a', ['A'], ['C']),
      resolver('b', ['B'], ['A']),
      resolver('c', ['C'], ['B']),
      resolver('d', ['D'], ['A']),
    ];
    const { order, problems } = arrangeResolvers([...given, resolver('self', ['S/1'], ['S/*'])]);
    expect(names(order)).toEqual(['d']);
    expect(problems.map(({ reason, stopped }) => [reason, names(stopped)])).toEqual([
      ['ResolverCycle', ['a', 'b', 'c']],
      ['ResolverCycle', ['self']],
    ]);
    expect(problems[0]?.message).toContain('a waits for C; b waits for A; c waits for B');
  });

  test('of two with overlapping claims or one name the later one does not run', () => {
    const { order, problems } = arrangeResolvers([
      resolver('a', ['ipam/*']),
      resolver('b', ['other', 'ipam/v1.IPClaim.*']),
      resolver('a', ['third']),
    ]);
    expect(names(order)).toEqual(['a']);
    expect(problems.map(({ reason }) => reason)).toEqual(['ClaimOverlap', 'DuplicateResolver']);
    expect(problems[0]?.message).toContain('resolver b claims ipam/v1.IPClaim.*, which resolver a claims too');
  });

  test.each([
    ['a', 'a', true],
    ['a', 'ab', false],
    ['a*', 'ab', true],
    ['ab', 'a*', true],
    ['a*', 'ab*', true],
    ['ab*', 'a*', true],
    ['ab*', 'ac*', false],
    ['abc', 'abcd*', false],
    ['*', 'x', true],
  ])('patterns %s and %s overlap: %s', (a, b, overlap) => {
    expect(patternsOverlap(a, b)).toBe(overlap);
    expect(patternsOverlap(b, a)).toBe(overlap);
  });

  test('property: every resolver runs or is reported, and the order respects every wait', () => {
    const graph = fc.array(fc.array(fc.nat(7), { maxLength: 3 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(graph, (waits) => {
        const given = waits.map((targets, index) =>
          resolver(
            `r${index}`,
            [`T${index}`],
            targets.map((target) => `T${target}`),
          ),
        );
        const { order, problems } = arrangeResolvers(given);
        const stopped = problems.flatMap((problem) => names(problem.stopped));
        expect([...names(order), ...stopped].sort()).toEqual(names(given).sort());
        // A resolver is in a cycle exactly if following the waits leads back to it.
        const follow = (from: number): Set<number> => {
          const seen = new Set<number>();
          const open = [...(waits[from] ?? [])];
          for (let next = open.pop(); next !== undefined; next = open.pop()) {
            if (seen.has(next)) continue;
            seen.add(next);
            open.push(...(waits[next] ?? []));
          }
          return seen;
        };
        for (const index of waits.keys()) expect(stopped.includes(`r${index}`)).toBe(follow(index).has(index));
        for (const [place, { waitsFor = [] }] of order.entries())
          for (const later of order.slice(place + 1)) expect(waitsFor).not.toContain(later.claims[0]);
      }),
      { numRuns: runs(500) },
    );
  });
});

test('applicable resolvers are those that apply, and those whose check throws', () => {
  const { revision, content } = draftOf({ 'a.yaml': 'apiVersion: v1\nkind: A\n' });
  const applies = (name: string, says: Resolver['applies']) => resolverOf(name, () => ({}), { applies: says });
  const kindIs =
    (kind: string): Resolver['applies'] =>
    ({ objects }) =>
      objects.some((object) => object.kind === kind);
  const broken = () => {
    throw new Error('broken');
  };
  expect(
    applicableResolvers(
      [applies('b', kindIs('A')), applies('c', kindIs('B')), applies('a', broken)],
      subjectOf(revision, content),
      true,
    ),
  ).toEqual(['a', 'b']);
});
