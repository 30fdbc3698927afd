import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { allocate, allocateAll } from './allocate.ts';
import { AllocationTable, deriveTable } from './allocation-table.ts';
import type { Assignment, Claim } from './claim.ts';
import { contains, parsePrefix, type Range } from './ipv4.ts';
import { type Pool, poolFromPrefix } from './pool.ts';

const options = { gracePeriod: 10 };

function pool(name: string, kind: string, prefix: string): Pool {
  const made = poolFromPrefix({ metadata: { name }, spec: { kind, networkInstance: { name: 'n' }, prefix } });
  if ('problem' in made) throw new Error(made.problem);
  return made;
}

const POOLS = [
  pool('all', 'aggregate', '10.0.0.0/22'),
  pool('lan', 'network', '10.0.0.1/28'),
  pool('lan2', 'network', '10.0.0.33/29'),
  pool('dnn', 'pool', '10.0.1.0/25'),
];

const claims = fc
  .record({
    name: fc.integer({ min: 0, max: 30 }),
    shape: fc.constantFrom<Partial<Claim>>(
      { kind: 'network' },
      { kind: 'network', prefix: '10.0.0.5' },
      { kind: 'network', index: 6 },
      { kind: 'network', hint: '10.0.0.7/28' },
      { kind: 'network', createPrefix: true, prefixLength: 26 },
      { kind: 'pool', prefixLength: 27 },
      { kind: 'pool', prefixLength: 29 },
      { kind: 'pool', prefix: '10.0.1.64/26' },
      { kind: 'loopback' },
    ),
  })
  .map(({ name, shape }) => makeClaim(`c${name}`, shape));

function makeClaim(name: string, shape: Partial<Claim>): Claim {
  const owner = { repository: 'r', packagePath: 'p', namespace: 'default', kind: 'IPClaim', name };
  return { owner, networkInstance: 'default/n', kind: 'network', matchLabels: {}, ...shape };
}

function assignmentOf(claim: Claim, range: Range, since: number): Assignment {
  return { owner: claim.owner, networkInstance: claim.networkInstance, range, published: false, since };
}

function overlap(a: Range, b: Range): boolean {
  return contains(a, b) || contains(b, a);
}

const steps = fc.array(fc.oneof(claims, fc.record({ release: fc.nat() })), { maxLength: 60 });

describe('allocation', () => {
  test('never gives overlapping values or reserved addresses over any sequence of claims and releases', () => {
    fc.assert(
      fc.property(steps, (sequence) => {
        const table = new AllocationTable(POOLS, options);
        const held = new Map<string, Assignment>();
        const released: Assignment[] = [];
        sequence.forEach((step, now) => {
          if ('release' in step) {
            const victim = [...held.values()][step.release % Math.max(1, held.size)];
            if (victim === undefined) return;
            held.delete(victim.owner.name);
            table.remove(victim);
            table.add({ ...victim, released: now });
            released.push({ ...victim, released: now });
            return;
          }
          const { allocated } = allocate(table, step, now);
          if (allocated === undefined) return;
          const { range } = allocated;
          for (const [name, other] of held)
            if (name !== step.owner.name) expect(overlap(other.range, range)).toBe(false);
          for (const other of released)
            if (other.owner.name !== step.owner.name && (other.released ?? 0) + options.gracePeriod > now)
              expect(overlap(other.range, range)).toBe(false);
          expect(['10.0.0.0', '10.0.0.1', '10.0.0.15', '10.0.0.32', '10.0.0.33', '10.0.0.39']).not.toContain(
            allocated.prefix.split('/')[0],
          );
          const before = held.get(step.owner.name);
          if (before !== undefined) table.remove(before);
          const after = assignmentOf(step, range, now);
          table.add(after);
          held.set(step.owner.name, after);
        });
        expect(table.duplicates()).toEqual([]);
      }),
      { numRuns: runs(300) },
    );
  });

  test('does not depend on the order of pools, assignments and claims, and is sticky', () => {
    const held = fc.record({ claim: claims, at: fc.integer({ min: 0, max: 1023 }), published: fc.boolean() });
    const distinct = fc.uniqueArray(claims, { selector: (claim) => claim.owner.name, maxLength: 12 });
    fc.assert(
      fc.property(
        fc.array(held, { maxLength: 12 }),
        distinct,
        fc.infiniteStream(fc.nat()),
        (existing, batch, random) => {
          const base = parsePrefix('10.0.0.0/22')?.range.base ?? 0;
          const assignments = existing.map(({ claim, at, published }) => ({
            ...assignmentOf(claim, { base: base + at, length: 32 }, at),
            published,
          }));
          const shuffle = <T>(list: readonly T[]): T[] =>
            list
              .map((item) => ({ item, key: random.next().value as number }))
              .sort((a, b) => a.key - b.key)
              .map(({ item }) => item);
          const answer = (table: AllocationTable, list: readonly Claim[]): unknown => {
            const { outcomes } = allocateAll(table, list, 5000);
            return Object.fromEntries(
              list.map((claim, place) => [
                claim.owner.name,
                outcomes[place]?.allocated?.prefix ?? outcomes[place]?.refused?.message,
              ]),
            );
          };
          const table = deriveTable(POOLS, assignments, options);
          const duplicates = table.duplicates();
          const first = answer(table, batch);
          const other = deriveTable(shuffle(POOLS), shuffle(assignments), options);
          expect(other.duplicates()).toEqual(duplicates);
          expect(answer(other, shuffle(batch))).toEqual(first);
          expect(answer(table, shuffle(batch))).toEqual(first);
        },
      ),
      { numRuns: runs(300) },
    );
  });

  test('10,000 claims fill a /16 from the bottom without a gap or a duplicate', () => {
    const table = new AllocationTable([pool('big', 'network', '10.9.0.1/16')], options);
    const many = Array.from({ length: 10_000 }, (_, number) => makeClaim(`c${String(number).padStart(5, '0')}`, {}));
    const { outcomes, taken } = allocateAll(table, many, 0);
    expect(new Set(taken.map(({ range }) => range.base)).size).toBe(10_000);
    expect(outcomes[9_999]?.allocated?.prefix).toBe('10.9.39.17/16');
    expect(table.usage()).toMatchObject([{ total: 65_533, free: 55_533 }]);
  });
});
