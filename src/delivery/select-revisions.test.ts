import { expect, test } from 'vitest';
import { deliveryTargetSpec, settingsOf, type TargetSettings } from './delivery-target.ts';
import { type PublishedRevision, selectRevisions } from './select-revisions.ts';
import { readMessage, writeMessage } from './trailers.ts';

function target(more: object = {}): TargetSettings {
  return settingsOf('edge', deliveryTargetSpec.parse({ git: { repo: 'file:///x.git' }, ...more }));
}

function revision(path: string, number: number, more: Partial<PublishedRevision> = {}): PublishedRevision {
  return { repository: 'packages', package: path, revision: number, labels: {}, ...more };
}

function choose(revisions: readonly PublishedRevision[], to = target()): unknown {
  const { chosen, refused } = selectRevisions(to, revisions);
  return [chosen.map((item) => `${item.repository}/${item.package} v${item.revision}`), refused];
}

test('the highest revision of each package, in order', () => {
  const revisions = [revision('b', 9), revision('b', 10), revision('a', 1), revision('a', 1, { repository: 'x' })];
  expect(choose(revisions)).toEqual([['packages/a v1', 'packages/b v10', 'x/a v1'], []]);
  expect(choose(revisions.toReversed())).toEqual(choose(revisions));
});

test('repositories, packages and labels narrow the choice; labels are those of the chosen revision', () => {
  const labels = { site: 'edge' };
  const revisions = [
    revision('a', 1, { labels }),
    revision('a', 2),
    revision('b', 1),
    revision('b', 2, { labels }),
    revision('c', 1, { labels, repository: 'other' }),
  ];
  const only = (selector: object): unknown => (choose(revisions, target({ selector })) as unknown[])[0];
  expect(only({ packageSelector: { matchLabels: labels } })).toEqual(['other/c v1', 'packages/b v2']);
  expect(only({ repositories: ['other'] })).toEqual(['other/c v1']);
  expect(only({ packages: ['a'] })).toEqual(['packages/a v2']);
  expect(only({ repositories: [] })).toEqual([]);
});

test('a pinned revision and no other', () => {
  const revisions = [revision('a', 1), revision('a', 2), revision('b', 1)];
  expect(choose(revisions, target({ pins: { a: 1 } }))).toEqual([['packages/a v1', 'packages/b v1'], []]);
  expect(choose(revisions, target({ pins: { 'packages/a': 2, a: 1 } }))).toEqual([
    ['packages/a v2', 'packages/b v1'],
    [],
  ]);
  expect(choose(revisions, target({ pins: { a: 3 } }))).toEqual([
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
  expect(choose(revisions, target({ pins: { a: 2 } }))).toEqual([
    [],
    [expect.objectContaining({ reason: 'OutOfBand' })],
  ]);
});

test('the spec of a target is strict', () => {
  expect(() => target({ allowSecret: true })).toThrow('allowSecret');
  expect(() => target({ pins: { a: 0 } })).toThrow();
  expect(() => target({ onRemoval: 'keep' })).toThrow();
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
