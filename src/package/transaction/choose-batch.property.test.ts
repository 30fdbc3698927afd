import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { RequestGroup } from '../../resource/object/request-group.ts';
import { chooseBatch } from './choose-batch.ts';

const ONE = new RequestGroup(0);
const OTHER = new RequestGroup(0);

const write = fc.record({
  package: fc.constantFrom('a', 'a/b', 'a/b/c', 'b', 'c', 'd', 'e/f'),
  wholePackage: fc.boolean(),
  urgent: fc.boolean(),
  shared: fc.constantFrom(undefined, { group: ONE }, { group: OTHER }),
});

test('a batch is as large as it may be where no step is in it, of independent writes, and the one that waits longest is in it', () => {
  fc.assert(
    fc.property(fc.array(write, { minLength: 1, maxLength: 30 }), fc.integer({ min: 1, max: 12 }), (waiting, most) => {
      const chosen = chooseBatch(waiting, most);
      expect(chosen.length).toBeLessThanOrEqual(most);
      if (most >= 4) expect(chosen).toContain(waiting[0]);
      for (const one of chosen) for (const other of chosen) if (one !== other) expect(related(one, other)).toBe(false);
      const hasStep = chosen.some(({ urgent }) => urgent);
      const left = waiting.filter((one) => !chosen.includes(one) && (one.urgent || !hasStep));
      if (chosen.length < most) for (const one of left) expect(chosen.some((other) => related(one, other))).toBe(true);
    }),
    { numRuns: runs(100) },
  );
});

test('with one of a group a batch has all of them that are independent, as far as it may be larger for that', () => {
  fc.assert(
    fc.property(
      fc.array(write, { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 12 }),
      (waiting, most, mostShared) => {
        const chosen = chooseBatch(waiting, most, mostShared);
        expect(chosen.length).toBeLessThanOrEqual(Math.max(most, mostShared));
        expect(chosen.slice(0, chooseBatch(waiting, most).length)).toEqual(chooseBatch(waiting, most));
        for (const one of chosen)
          for (const other of chosen) if (one !== other) expect(related(one, other)).toBe(false);
        if (chosen.length >= Math.max(most, mostShared)) return;
        const groups = new Set(chosen.map(({ shared }) => shared?.group));
        for (const one of waiting)
          if (one.shared !== undefined && groups.has(one.shared.group) && !chosen.includes(one))
            expect(chosen.some((other) => related(one, other))).toBe(true);
      },
    ),
    { numRuns: runs(1000) },
  );
});

test('steps pass creations and edits, which keep a share', () => {
  const edits = Array.from({ length: 50 }, (_, number) => ({
    package: `e${number}`,
    wholePackage: false,
    urgent: false,
  }));
  const steps = Array.from({ length: 50 }, (_, number) => ({
    package: `s${number}`,
    wholePackage: true,
    urgent: true,
  }));
  const chosen = chooseBatch([...edits, ...steps], 20);
  expect(chosen.filter(({ urgent }) => urgent)).toEqual(steps.slice(0, 15));
  expect(chosen.filter(({ urgent }) => !urgent)).toEqual(edits.slice(0, 5));
  expect(chooseBatch([...edits, ...steps.slice(0, 1)], 20)).toHaveLength(6);
  expect(chooseBatch(edits, 20)).toHaveLength(20);
});

function related(
  one: { package: string; wholePackage: boolean },
  other: { package: string; wholePackage: boolean },
): boolean {
  if (one.package === other.package) return one.wholePackage || other.wholePackage;
  return one.package.startsWith(`${other.package}/`) || other.package.startsWith(`${one.package}/`);
}
