import { expect, test } from 'vitest';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { settingsOf, type TargetSettings } from '../delivery-target.ts';
import { readMessage, writeMessage } from '../tree/trailers.ts';
import {
  type DeliveredRevision,
  isAlert,
  type PackageRefusal,
  type PublishedRevision,
  packageKey,
  type SelectionFacts,
  selectRevisions,
} from './select-revisions.ts';

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
  { delivered = [], ...facts }: Facts = {},
): [string[], PackageRefusal[]] {
  const { chosen, blocked } = selectRevisions(to, revisions, {
    delivered: new Map(delivered.map((one) => [packageKey(one), one])),
    isSelected: () => true,
    isDeleted: () => false,
    ...facts,
  });
  return [chosen.map((item) => `${item.repository}/${item.package} v${item.revision}`), [...blocked]];
}

interface Facts extends Partial<Omit<SelectionFacts<PublishedRevision>, 'delivered'>> {
  readonly delivered?: readonly DeliveredRevision[];
}

const PUSHED = { outOfBand: { reason: 'NotAnApproval', message: 'pushed' } };
const REVOKED = { outOfBand: { reason: 'RevokedKey', message: 'revoked' } };
const UNVERIFIED = { outOfBand: { reason: 'Unverified', message: 'not verified yet' } };

function folder(path: string, number: number, more: Partial<DeliveredRevision> = {}): DeliveredRevision {
  return { repository: 'packages', package: path, revision: number, hasFolder: true, ...more };
}

const blocked = (reason: string, revision: number, message: string) =>
  expect.objectContaining({ reason, revision, message: expect.stringContaining(message) });

test('the highest revision of each package, in order', () => {
  const revisions = [revision('b', 9), revision('b', 10), revision('a', 1), revision('a', 1, { repository: 'x' })];
  expect(choose(revisions)).toEqual([['packages/a v1', 'packages/b v10', 'x/a v1'], []]);
  expect(choose(revisions.toReversed())).toEqual(choose(revisions));
});

test('the selector is evaluated on the revision that would be delivered', () => {
  const revisions = [revision('a', 1), revision('a', 2)];
  expect(choose(revisions, target(), { isSelected: (item) => item.revision === 2 })).toEqual([['packages/a v2'], []]);
  expect(choose(revisions, target(), { isSelected: (item) => item.revision !== 2 })).toEqual([[], []]);
});

test('a merge at the Git host that bypassed gates or approvals is not delivered', () => {
  for (const reason of ['GateUnmet', 'NotApproved']) {
    const merged = revision('a', 2, { outOfBand: { reason, message: 'the Git host merged it' } });
    const delivered = [folder('a', 1)];
    expect(choose([revision('a', 1), merged], target(), { delivered })).toEqual([
      [],
      [blocked('OutOfBand', 2, `v2 was published out of band (${reason}: the Git host merged it)`)],
    ]);
    expect(choose([merged])[0]).toEqual([]);
    expect(choose([merged], target({ allowOutOfBand: true }))[0]).toEqual(['packages/a v2']);
  }
});

const pin = (number: number): object => ({ repository: 'packages', package: 'a', revision: number });

test('only the pinned revision', () => {
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
  expect(choose(revisions, target({ pins: [pin(1)] }), { delivered: [folder('a', 2)] })[0]).toContain('packages/a v1');
  const lost = { delivered: [folder('a', 3)] };
  expect(choose(revisions, target({ pins: [pin(1)] }), lost)[0]).toContain('packages/a v1');
});

test('while a newer publication does not count, the delivered one stays, and no other is delivered', () => {
  const revisions = [revision('a', 1), revision('a', 2), revision('a', 3, PUSHED)];
  expect(choose(revisions, target(), { delivered: [folder('a', 1)] })).toEqual([
    [],
    [
      expect.objectContaining({
        revision: 3,
        reason: 'OutOfBand',
        message:
          'v3 was published out of band (NotAnApproval: pushed), and the target does not allow that; v1 stays delivered',
      }),
    ],
  ]);
  expect(choose(revisions)).toEqual([[], [blocked('OutOfBand', 3, 'nothing is delivered')]]);
  expect(choose(revisions, target({ allowOutOfBand: true }))).toEqual([['packages/a v3'], []]);
  expect(choose(revisions, target({ pins: [pin(3)] }))).toEqual([
    [],
    [blocked('OutOfBand', 3, 'nothing is delivered')],
  ]);
});

test('a delivered revision that loses its trust stays, and no older one replaces it', () => {
  const revisions = [revision('a', 1), revision('a', 2, REVOKED)];
  const facts = { delivered: [folder('a', 2)] };
  const lost = blocked('TrustLost', 2, 'v2 was delivered and does not count any more (RevokedKey: revoked); v2 stays');
  expect(choose(revisions, target(), facts)).toEqual([[], [lost]]);
  // A publication that does not count must not remove the package from the target by its labels.
  const byLabel = { ...facts, isSelected: ({ revision: number }: PublishedRevision) => number === 1 };
  expect(choose(revisions, target(), byLabel)).toEqual([[], [lost]]);
  expect(choose([revision('a', 3), ...revisions], target(), facts)).toEqual([['packages/a v3'], []]);
});

test('labels in a record that does not count neither remove nor add a package', () => {
  const isSelected = () => undefined;
  const delivered = [folder('a', 1)];
  expect(choose([revision('a', 1)], target(), { delivered, isSelected })).toEqual([
    [],
    [blocked('TrustLost', 1, 'the record of v1 with its labels does not count')],
  ]);
  expect(choose([revision('a', 1)], target(), { isSelected })).toEqual([[], []]);
});

test('an unverified publication waits without an alert', () => {
  const [chosen, waiting] = choose([revision('a', 1), revision('a', 2, UNVERIFIED)], target(), {
    delivered: [folder('a', 1)],
  });
  expect([chosen, waiting]).toEqual([[], [blocked('Unverified', 2, 'v1 stays delivered')]]);
  expect(waiting.map(isAlert)).toEqual([false]);
});

test('the folder of a delivered revision that vanished stays unless it was deleted through Sluice', () => {
  const delivered = [folder('a', 2)];
  const lost = blocked('OutOfBandRemoval', 2, 'it was not deleted through Sluice');
  for (const revisions of [[], [revision('a', 1)]]) {
    expect(choose(revisions, target(), { delivered })).toEqual([[], [lost]]);
    // Also where a user removed the folder.
    expect(choose(revisions, target(), { delivered: [folder('a', 2, { hasFolder: false })] })).toEqual([[], [lost]]);
    const left = revisions.map(() => 'packages/a v1');
    expect(choose(revisions, target(), { delivered, isDeleted: () => true })).toEqual([left, []]);
    expect(choose(revisions, target({ allowOutOfBand: true }), { delivered })).toEqual([left, []]);
  }
  expect(choose([revision('a', 1, PUSHED)], target(), { delivered, isDeleted: () => true })).toEqual([
    [],
    [blocked('OutOfBand', 1, 'v2 stays delivered')],
  ]);
});

test('targets of two namespaces have different names', () => {
  expect(target().name).toBe('edge');
  expect(target({}, { name: 'edge', namespace: 'default' }).name).toBe('edge');
  expect(target({}, { name: 'edge', namespace: 'lab' }).name).toBe('lab/edge');
});

test('a message is parsed back for any names', () => {
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

test('a branch that went back does not make a delivered revision forgotten that is missing', () => {
  const back: DeliveredRevision = { repository: 'packages', package: 'web', revision: 1, reported: 2, hasFolder: true };
  const [chosen, [refused]] = choose([revision('web', 1)], target(), { delivered: [back] });
  expect(chosen).toEqual([]);
  expect(refused).toMatchObject({ reason: 'OutOfBandRemoval', revision: 2 });
  expect(choose([revision('web', 1), revision('web', 2)], target(), { delivered: [back] })[0]).toEqual([
    'packages/web v2',
  ]);
  // A user deleted the later one.
  const isDeleted = ({ revision: number }: DeliveredRevision) => number === 2;
  expect(choose([revision('web', 1)], target(), { delivered: [back], isDeleted })[0]).toEqual(['packages/web v1']);
});
