import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { decidePull, type PullFacts } from './decide-pull.ts';

const HEADS = ['a', 'b'];
const facts: fc.Arbitrary<PullFacts> = fc.record(
  {
    isPending: fc.boolean(),
    merge: fc.constantFrom('automatic', 'manual'),
    isUnknownForLong: fc.boolean(),
    branch: fc.record({
      head: fc.constantFrom(...HEADS),
      isOwn: fc.boolean(),
      isCurrent: fc.boolean(),
      isUpToDate: fc.boolean(),
    }),
    pull: fc.record({
      state: fc.constantFrom('open', 'merged', 'closed'),
      head: fc.constantFrom(...HEADS),
      isRejected: fc.boolean(),
      mayReopen: fc.boolean(),
    }),
    mergeability: fc.constantFrom('mergeable', 'conflict', 'behind', 'blocked', 'draft', 'queued', 'unknown'),
  },
  { requiredKeys: ['isPending', 'merge'] },
);

test('no step loses what users did, or delivers what is not desired', () => {
  fc.assert(
    fc.property(facts, (now) => {
      const { branch, pull, mergeability, isPending } = now;
      const step = decidePull(now);
      const isOpen = pull?.state === 'open';
      const writes = step.do === 'push' || step.do === 'remove-branch';
      // Commits of users stay, unless their pull request has ended at them.
      if (writes && branch !== undefined && !branch.isOwn) expect(!isOpen && pull?.head === branch.head).toBe(true);
      if (step.do === 'push') expect(isPending && !(isOpen && mergeability === 'queued')).toBe(true);
      if (step.do === 'merge') {
        expect(isPending && isOpen && branch?.isOwn === true && branch.isCurrent).toBe(true);
        expect(now.merge).toBe('automatic');
      }
      if (step.do === 'open') expect(isPending && !isOpen && branch?.isCurrent === true).toBe(true);
      if (step.do === 'close') expect(!isPending && isOpen).toBe(true);
      if (step.do === 'remove-branch') expect(isPending || isOpen).toBe(false);
      if (!isOpen && pull?.isRejected === true && pull.state === 'closed' && isPending)
        expect([{ do: 'reopen' }, { do: 'wait', for: 'reopen' }]).toContainEqual(step);
      // What users closed stays so, and what is not as it was proposed.
      if (step.do === 'reopen')
        expect(isPending && !isOpen && pull?.mayReopen && branch?.isCurrent && pull.head === branch.head).toBe(true);
    }),
    { numRuns: runs(1000) },
  );
});

test('each sequence of steps ends: with a merge, or waiting', () => {
  fc.assert(
    fc.property(facts, (start) => {
      let now: PullFacts = start;
      for (let step = 0; step < 6; step += 1) {
        const next = decidePull(now);
        if (next.do === 'wait' || next.do === 'nothing' || next.do === 'merge') return;
        const own = { head: 'new', isOwn: true, isCurrent: true, isUpToDate: true };
        const { branch, pull, mergeability, ...rest } = now;
        const kept = {
          ...rest,
          ...(branch === undefined ? {} : { branch }),
          ...(pull === undefined ? {} : { pull }),
          ...(mergeability === undefined ? {} : { mergeability }),
        };
        if (next.do === 'push')
          now = { ...kept, branch: own, ...(pull?.state === 'open' ? { pull: { ...pull, head: 'new' } } : {}) };
        if (next.do === 'open')
          now = { ...kept, pull: { state: 'open', head: 'new', isRejected: false }, mergeability: 'mergeable' };
        if (next.do === 'reopen' && pull !== undefined)
          now = { ...kept, pull: { ...pull, state: 'open', mayReopen: false }, mergeability: 'mergeable' };
        if (next.do === 'close' && pull !== undefined) now = { ...kept, pull: { ...pull, state: 'closed' } };
        if (next.do === 'remove-branch') {
          const { branch: _removed, ...without } = kept;
          now = without;
        }
      }
      throw new Error('it goes on');
    }),
    { numRuns: runs(1000) },
  );
});
