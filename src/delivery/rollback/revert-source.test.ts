import { expect, test } from 'vitest';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { namedSource, type Revision, revertSource } from './revert-source.ts';

const WEB = { repository: 'packages', package: 'web' };

function revision(number: number): Revision {
  const object = packageRevisionKind.complete({
    metadata: { name: `packages.web.w${number}`, namespace: 'default' },
    spec: {
      ...{ repository: 'packages', packageName: 'web', workspaceName: `w${number}`, lifecycle: 'Published' },
      revision: number,
    },
  });
  return { ...object, metadata: { ...object.metadata, resourceVersion: '1', uid: 'u' } } as Revision;
}

const REVISIONS = [5, 6, 7, 8].map(revision);
const V8 = REVISIONS[3] as Revision;

function target(name: string, status: Partial<NonNullable<DeliveryTarget['status']>>): DeliveryTarget {
  const complete = deliveryTargetKind.complete({
    metadata: { name },
    spec: { selector: {}, git: { repo: 'file:///x.git' } },
  });
  return { ...complete, status };
}

const back = (from: number, to: number) => ({ ...WEB, from, to, time: '', reason: 'Degraded' });
const failed = (number: number) => ({ ...WEB, revision: number, time: '' });
const result = (targets: readonly DeliveryTarget[]) => {
  const found = revertSource(V8, REVISIONS, targets);
  return [found?.revision.spec.revision, found?.notes];
};

test('a revert skips revisions that failed on a target', () => {
  expect(result([])).toEqual([7, []]);
  const east = target('east', { rollbacks: [back(8, 6)], failedRevisions: [failed(7), failed(8)] });
  expect(result([east])).toEqual([6, ['skipped v7, which failed on east']]);
  const west = target('west', { failedRevisions: [failed(7), { ...failed(6), package: 'db' }] });
  expect(result([west, east])).toEqual([6, ['skipped v7, which failed on east, west']]);
});

test('a revert prefers what a target went back to, and warns where everything failed', () => {
  expect(result([target('east', { rollbacks: [back(8, 5)] })])).toEqual([5, []]);
  const all = target('east', { failedRevisions: [failed(5), failed(6), failed(7)] });
  expect(result([all])).toEqual([7, [expect.stringContaining('every earlier revision failed on a target: v7')]]);
  expect(revertSource(REVISIONS[0] as Revision, REVISIONS, [])).toBeUndefined();
});

test('a revert goes back to the last revision that was delivered, and to the highest one where none is recorded', () => {
  const delivered = (...numbers: number[]) => {
    const changes = numbers.map((number) => ({ ...WEB, revision: number, deliveredAt: '' }));
    return { history: { commit: '', observedFrom: '', completeFrom: '', changes } };
  };
  const west = target('west', delivered(5, 8));
  expect(result([west])).toEqual([
    5,
    ['skipped v6, whose delivery is not recorded', 'skipped v7, whose delivery is not recorded'],
  ]);
  expect(result([west, target('east', delivered(6))])).toEqual([6, ['skipped v7, whose delivery is not recorded']]);
  expect(result([target('east', { ...delivered(5, 6), failedRevisions: [failed(6)] })])).toEqual([
    5,
    ['skipped v6, which failed on east', 'skipped v7, whose delivery is not recorded'],
  ]);
  expect(revertSource(V8, REVISIONS, [west])?.isDelivered).toBe(true);
  expect(revertSource(V8, REVISIONS, [west], 6)).toMatchObject({ revision: REVISIONS[1], isDelivered: true });
  expect(revertSource(V8, REVISIONS, [target('east', delivered(8))])).toMatchObject({
    ...{ revision: REVISIONS[2], isDelivered: false, notes: [] },
  });
});

test('a named revision is found by name and by number, and must be another published one', () => {
  const targets = [target('east', { failedRevisions: [failed(6)] })];
  expect(namedSource('packages.web.w5', V8, REVISIONS, targets)).toMatchObject({ revision: REVISIONS[0], notes: [] });
  expect(namedSource('v6', V8, REVISIONS, targets)).toEqual({
    ...{ revision: REVISIONS[1], notes: ['v6, which failed on east'] },
  });
  for (const name of ['v8', 'v9', 'packages.db.w1'])
    expect(() => namedSource(name, V8, REVISIONS, targets)).toThrow(/no other published revision .*packages\.web\.w7/);
});
