import { expect, test } from 'vitest';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import type { RevisionRecord } from '../model/record/record.ts';
import type { Allowed } from '../model/revision/revision-state.ts';
import { type DecidedOn, recordAfter } from './record-after.ts';

const DECIDED = { approvals: { isDecided: true, given: 1, needed: 1, missingIn: [] } } as unknown as Allowed;

/** The approvals in the record after bob has approved the same content by this review, at a day of January. */
function approve(record: Partial<RevisionRecord>, evidence: string, day: string): RevisionRecord {
  const at = `2026-01-${day}T00:00:00Z`;
  const approval = { subject: 'bob', content: 'c', tree: 't', face: 'api', namespace: 'default', evidence, at };
  const on = { state: {}, record, approval } as unknown as DecidedOn;
  const step = { action: 'approve', at, by: 'bob', face: 'api', commit: 'd' } as const;
  return recordAfter(DECIDED, on, step, {} as EffectivePolicy);
}

test('a decision for a merge that is made again keeps the time of the approval; another review is another approval', () => {
  const first = approve({ steps: [] }, '#review-1', '01');
  expect(first.approvals).toMatchObject([{ at: '2026-01-01T00:00:00Z', mergeOf: 'd' }]);
  expect(first.approvals?.[0]).not.toHaveProperty('decidedAt');
  const again = approve(first, '#review-1', '02');
  expect(again.approvals).toMatchObject([{ at: '2026-01-01T00:00:00Z', decidedAt: '2026-01-02T00:00:00Z' }]);
  const other = approve(again, '#review-2', '08');
  expect(other.approvals).toMatchObject([{ at: '2026-01-08T00:00:00Z', evidence: '#review-2' }]);
  expect(other.approvals?.[0]).not.toHaveProperty('decidedAt');
});
