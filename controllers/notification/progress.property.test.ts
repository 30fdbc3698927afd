import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { isDone, type Progress, progressFields, progressOf, withDone } from './progress.ts';

const NOW = Date.parse('2026-01-02T03:04:05Z');
const occurrences = fc.uniqueArray(
  fc.record({ at: fc.integer({ min: NOW, max: NOW + 300_000 }), id: fc.stringMatching(/^[0-9a-f]{6}$/) }),
  { selector: ({ id }) => id, maxLength: 150 },
);

test('what is done stays done, also after a restart, and the status is bounded', () => {
  fc.assert(
    fc.property(occurrences, (list) => {
      let progress: Progress = { until: NOW, recent: [] };
      for (const one of list) progress = withDone(progress, one);
      const restarted = progressOf({ ...progressFields(progress) } as never, '', NOW + 300_000);
      expect(restarted).toEqual(progress);
      expect(restarted.recent.length).toBeLessThanOrEqual(64);
      for (const one of list) expect(isDone(restarted, one)).toBe(true);
    }),
    { numRuns: runs(200) },
  );
});

test('an event that is somewhat late is not lost', () => {
  const progress = withDone({ until: NOW, recent: [] }, { at: NOW + 50_000, id: 'a' });
  expect(isDone(progress, { at: NOW + 1, id: 'b' })).toBe(false);
});

test('a clock that was set back does not silence a Notification', () => {
  const ahead = progressFields({ until: NOW + 3_600_000, recent: [] });
  expect(progressOf(ahead, '', NOW).until).toBe(NOW);
});
