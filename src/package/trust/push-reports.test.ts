import { expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { AttributedPush } from './ledger/attributed-pushes.ts';
import { PushReports } from './push-reports.ts';
import { SqliteAttributedPushes } from './sqlite/sqlite-attributed-pushes.ts';

const REGISTRATION = 'default/apps';
const REF = 'refs/heads/drafts/app/v1';
const OTHER_REF = 'refs/heads/drafts/other/v1';
const PUSH: AttributedPush = {
  ...{ repository: 'r1', registration: REGISTRATION, ref: REF },
  ...{ before: undefined, after: 'a'.repeat(40), user: 'octo', provider: 'github', at: '2026-01-01T00:00:00Z' },
};

/** Reports that can be read while they cannot be written, as on a full disk. */
class ReadOnlyPushes extends SqliteAttributedPushes {
  isFull = true;

  override supersede(...place: Parameters<SqliteAttributedPushes['supersede']>): void {
    if (this.isFull) throw new SluiceError('Unavailable', 'cannot use the reports: the disk is full');
    super.supersede(...place);
  }
}

test('a deletion that cannot be marked ends what the reports on the branch attribute, and is marked later', () => {
  const pushes = new ReadOnlyPushes(':memory:');
  const reports = new PushReports(pushes, () => 'r1');
  for (const ref of [REF, OTHER_REF]) pushes.note({ ...PUSH, ref });
  const superseded = (ref = REF) => reports.latest(REGISTRATION, ref).map(({ isSuperseded }) => isSuperseded);
  reports.supersede(REGISTRATION, [REF]);
  expect([superseded(), superseded(OTHER_REF)]).toEqual([[true], [false]]);
  expect(reports.problem).toContain('attribute nothing until they can be marked: cannot use the reports');
  // Whether it is about a push before the deletion cannot be known.
  pushes.note({ ...PUSH, after: 'b'.repeat(40) });
  expect(superseded()).toEqual([true, true]);
  pushes.isFull = false;
  expect(superseded()).toEqual([true, true]);
  expect(reports.problem).toBeUndefined();
  // It is marked for other processes too, and later reports count.
  expect(pushes.latest(PUSH).map(({ isSuperseded }) => isSuperseded)).toEqual([true, true]);
  pushes.note({ ...PUSH, after: 'c'.repeat(40) });
  expect(superseded()).toEqual([false, true, true]);
  pushes.close();
});

test('without reports there is nothing to mark', () => {
  const reports = new PushReports(undefined, () => 'r1');
  reports.supersede(REGISTRATION, [REF]);
  expect([reports.latest(REGISTRATION, REF), reports.problem]).toEqual([[], undefined]);
});
