import { expect, test } from 'vitest';
import { deliveryTargetKind } from '../resource/kinds/delivery-target.ts';
import { settingsOf, type TargetSettings } from './delivery-target.ts';
import { type PublishedRevision, selectRevisions } from './select-revisions.ts';
import { readMessage, writeMessage } from './trailers.ts';

function target(more: object = {}, metadata: { name: string; namespace?: string } = { name: 'edge' }): TargetSettings {
  const spec = { selector: {}, git: { repo: 'file:///x.git' }, ...more };
  return settingsOf(deliveryTargetKind.complete({ metadata, spec }));
}

function revision(path: string, number: number, more: Partial<PublishedRevision> = {}): PublishedRevision {
  return { repository: 'packages', package: path, revision: number, ...more };
}

function choose(
  revisions: readonly PublishedRevision[],
  to = target(),
  isSelected: (revision: PublishedRevision) => boolean = () => true,
): unknown {
  const { chosen, refused } = selectRevisions(to, revisions, isSelected);
  return [chosen.map((item) => `${item.repository}/${item.package} v${item.revision}`), refused];
}

test('the highest revision of each package, in order', () => {
  const revisions = [revision('b', 9), revision('b', 10), revision('a', 1), revision('a', 1, { repository: 'x' })];
  expect(choose(revisions)).toEqual([['packages/a v1', 'packages/b v10', 'x/a v1'], []]);
  expect(choose(revisions.toReversed())).toEqual(choose(revisions));
});

test('whether a package is selected is asked for the revision that would be delivered', () => {
  const revisions = [revision('a', 1), revision('a', 2), revision('b', 2), revision('b', 3, { outOfBand: 'pushed' })];
  expect(choose(revisions, target(), (item) => item.revision === 2)).toEqual([
    ['packages/a v2', 'packages/b v2'],
    [expect.objectContaining({ package: 'b', revision: 3 })],
  ]);
  expect(choose(revisions, target(), (item) => item.revision !== 2)).toEqual([[], []]);
});

const pin = (number: number): object => ({ repository: 'packages', package: 'a', revision: number });

test('a pinned revision and no other', () => {
  const revisions = [revision('a', 1), revision('a', 2), revision('b', 1)];
  expect(choose(revisions, target({ pins: [pin(1)] }))).toEqual([['packages/a v1', 'packages/b v1'], []]);
  expect(choose(revisions, target({ pins: [{ ...pin(1), repository: 'other' }] }))).toEqual([
    ['packages/a v2', 'packages/b v1'],
    [],
  ]);
  expect(choose(revisions, target({ pins: [pin(3)] }))).toEqual([
    ['packages/b v1'],
    [
      expect.objectContaining({
        reason: 'PinnedRevisionMissing',
        message: 'v3 is pinned, but the package has no such published revision; highest is v2',
      }),
    ],
  ]);
});

test('what came past the gates is passed over and told, unless allowed', () => {
  const revisions = [revision('a', 1), revision('a', 2, { outOfBand: 'pushed' })];
  expect(choose(revisions)).toEqual([
    ['packages/a v1'],
    [
      expect.objectContaining({
        revision: 2,
        reason: 'OutOfBand',
        message:
          'v2 did not come through the gates (pushed) and the target does not allow that; v1 is delivered instead',
      }),
    ],
  ]);
  expect(choose(revisions, target({ allowOutOfBand: true }))).toEqual([['packages/a v2'], []]);
  expect(choose(revisions, target({ pins: [pin(2)] }))).toEqual([
    [],
    [expect.objectContaining({ reason: 'OutOfBand' })],
  ]);
});

test('targets of two namespaces have different names', () => {
  expect(target().name).toBe('edge');
  expect(target({}, { name: 'edge', namespace: 'default' }).name).toBe('edge');
  expect(target({}, { name: 'edge', namespace: 'lab' }).name).toBe('lab/edge');
});

test('a message reads back whatever the names hold', () => {
  const odd = ' a\nSluice-Package: x/y\u2028%41, = by \u001b[31m é';
  const delivery = {
    delivered: [
      {
        repository: `r${odd}`.replace('/', ''),
        package: `p/${odd}`,
        revision: 12,
        sourceCommit: 'abc',
        sourceTree: 'def',
        gates: [
          { type: `t${odd}`, status: 'False', by: odd },
          { type: 'u', status: 'Unknown' },
        ] as const,
        outOfBand: odd,
      },
      { repository: 'r', package: 'p', revision: 1, sourceCommit: 'a', sourceTree: 'b', gates: [] },
    ],
    removed: [{ repository: 'r', package: `gone${odd}` }],
  };
  const message = writeMessage(odd, delivery);
  expect(readMessage(message)).toEqual(delivery);
  expect(message).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u2028]/);
  expect(message.split('\n').filter((line) => line.startsWith('Sluice-Package'))).toHaveLength(2);
  expect(readMessage('Sluice-Package: a/b\nSluice-Revision: v1\n').delivered).toEqual([]);
});
