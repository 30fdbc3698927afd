import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Condition } from '../../../kptfile-schema/index.ts';
import { runs } from '../../../test/support/runs.ts';
import { changedInputs, type PackageInputs } from '../model/content/inputs.ts';
import { type FoldedRecord, parseCommitMessage } from '../model/record/commit-message.ts';
import type { Verdict } from '../model/record/record.ts';
import { publishedRecord } from './replay-record.ts';

const TIME = Date.parse('2026-05-01T12:00:00Z');
const EARLIER = '2026-04-01T12:00:00Z';

const TESTED: Condition = { type: 'example.com/Tested', status: 'True', reason: 'RunPassed' };

function inputs(content: string): PackageInputs {
  return { content, object: () => undefined, file: () => undefined };
}

function verdict(content: string, changes: Partial<Verdict> = {}): Verdict {
  const given = { by: 'ci', face: 'api', at: EARLIER, since: EARLIER } as const;
  return { ...TESTED, inputs: { content }, ...given, ...changes };
}

/** The record of a publication that the kernel does not count, for the content `c2`. */
function outOfBand(folded: FoldedRecord | undefined, conditions: readonly Condition[] = [TESTED]) {
  const facts = { ...parseCommitMessage('Merge pull request #7\n'), record: folded };
  const byType = new Map(conditions.map((one) => [one.type, one]));
  return publishedRecord(
    { commit: 'm', time: TIME, facts, isInBand: false, record: undefined, conditions: byType },
    inputs('c2'),
  );
}

describe('the record of a publication that does not count', () => {
  const pushed = { by: 'push', face: 'git' };

  test('keeps a verdict for earlier content stale, whose issuer a forged record cannot choose', () => {
    const { verdicts } = outOfBand({ verdicts: [verdict('c1')], steps: [], content: 'c2' });
    expect(verdicts).toEqual([{ ...TESTED, inputs: { content: 'c1' }, ...pushed, at: EARLIER, since: EARLIER }]);
  });

  test('issues a verdict for the present content as the push, no later than before', () => {
    const { verdicts } = outOfBand({ verdicts: [verdict('c2')], steps: [], content: 'c2' });
    expect(verdicts).toEqual([{ ...TESTED, inputs: { content: 'c2' }, ...pushed, at: EARLIER, since: EARLIER }]);
  });

  test('has no verdict for a condition that had none', () => {
    expect(outOfBand({ verdicts: [], steps: [], content: 'c2' }).verdicts).toEqual([]);
  });

  test('issues what no record knows as the push', () => {
    const issued = { ...TESTED, inputs: { content: 'c2' }, ...pushed };
    expect(outOfBand(undefined).verdicts).toMatchObject([issued]);
    // Of other content, to which the condition was added later.
    expect(outOfBand({ verdicts: [], steps: [], content: 'c1' }).verdicts).toMatchObject([issued]);
    const changed = verdict('c1', { status: 'False' });
    expect(outOfBand({ verdicts: [changed], steps: [], content: 'c1' }).verdicts).toMatchObject([issued]);
  });

  test('has no verdict that a push without a record would not have, whatever the record claims', () => {
    const text = fc.constantFrom('c1', 'c2', 'absent', '');
    const claim = fc.record({
      ...{ type: fc.constantFrom(TESTED.type, 'other'), status: fc.constantFrom('True' as const, 'False' as const) },
      reason: fc.constantFrom(undefined, 'RunPassed'),
      inputs: fc.dictionary(fc.constantFrom('content', 'file:a', 'unknown'), text),
      ...{ by: fc.constantFrom('qa', 'push'), face: fc.constant('api' as const) },
      ...{ at: fc.constantFrom(EARLIER, '2099-01-01T00:00:00Z', 'never'), since: fc.constant(EARLIER) },
    });
    const plain = outOfBand(undefined).verdicts;
    fc.assert(
      fc.property(fc.array(claim, { maxLength: 3 }), text, (claims, content) => {
        const { verdicts } = outOfBand({ verdicts: claims as Verdict[], steps: [], content });
        for (const one of verdicts) {
          const [first] = plain;
          expect(one).toMatchObject({ ...pushed, type: TESTED.type, status: 'True' });
          expect(Date.parse(one.at)).toBeLessThanOrEqual(TIME);
          const isCurrent = changedInputs(one.inputs, inputs('c2')).length === 0;
          if (isCurrent) expect(one.inputs).toEqual(first?.inputs);
        }
      }),
      { numRuns: runs(2000) },
    );
  });
});
