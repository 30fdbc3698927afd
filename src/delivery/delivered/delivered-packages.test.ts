import { expect, test } from 'vitest';
import { deliveredBy, storedDelivery, storedTarget } from '../../../test/support/delivered.ts';
import type { InformerHandler } from '../../controller/informer.ts';
import { ManualClock, settle } from '../../foundation/time/manual-clock.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { PackageDelivery } from '../../resource/kinds/sluice/delivery/package-delivery.ts';
import { DeliveredPackages } from './delivered-packages.ts';

function target(name: string, status = {}) {
  const object = deliveryTargetKind.complete({
    metadata: { name },
    spec: { selector: {}, git: { repo: 'file:///x.git' } },
  });
  return storedTarget({ ...object, status });
}

const one = (path: string, revision = 1) => ({
  ...{ repository: 'apps', package: path, revision },
  ...{ commit: 'c', tree: 't' },
});
const edge = target('edge');

/** Packages that follow an informer of which the test sends the events. */
function followed() {
  const packages = new DeliveredPackages();
  let handler: InformerHandler<PackageDelivery> = () => undefined;
  packages.follow({
    addHandler: (added) => {
      handler = added;
      return () => undefined;
    },
  });
  return { packages, send: (event: Parameters<InformerHandler<PackageDelivery>>[0]) => handler(event) };
}

test('packages are those of one target, sorted, and each can be found', () => {
  const west = target('west');
  const packages = deliveredBy([edge, [one('web'), one('db', 3)]], [west, [one('dns')]]);
  expect(packages.of(edge)).toEqual([one('db', 3), one('web')]);
  expect(packages.of(west)).toEqual([one('dns')]);
  expect(packages.of(target('other'))).toEqual([]);
  expect(packages.find(edge, one('db'))).toEqual(one('db', 3));
  expect(packages.find(west, one('db'))).toBeUndefined();
});

test('objects of an earlier target with the same name, or with another name, do not count', () => {
  const later = { ...edge, metadata: { ...edge.metadata, uid: 'later' } };
  const packages = deliveredBy([edge, [one('web')]]);
  expect([packages.of(later), packages.find(later, one('web')), packages.objectsOf(later).size]).toEqual([
    ...[[], undefined],
    1,
  ]);
  const object = storedDelivery(edge, one('db'));
  const forged = { ...object, metadata: { ...object.metadata, name: 'edge.db' } };
  expect(DeliveredPackages.from([forged]).of(edge)).toEqual([]);
});

test('a list in the status counts instead of the objects, as long as it is there', () => {
  const packages = deliveredBy([edge, [one('web', 2)]]);
  const earlier = { ...edge, status: { packages: [one('db'), one('web')] } };
  expect(packages.of(earlier)).toEqual([one('db'), one('web')]);
  expect(packages.find(earlier, one('web'))).toEqual(one('web'));
  expect(packages.find(edge, one('web'))).toEqual(one('web', 2));
});

test('events change what is read', () => {
  const { packages, send } = followed();
  const object = storedDelivery(edge, one('web'));
  send({ type: 'add', object });
  expect(packages.of(edge)).toEqual([one('web')]);
  const next = storedDelivery(edge, one('web', 2), '2');
  send({ type: 'update', object: next, old: object });
  expect(packages.of(edge)).toEqual([one('web', 2)]);
  send({ type: 'delete', object: next });
  expect(packages.of(edge)).toEqual([]);
});

test('a writer waits until reads show its writes', async () => {
  const clock = new ManualClock();
  const { packages, send } = followed();
  const old = storedDelivery(edge, one('db'));
  const [first, second] = ['2', '3'].map((version) => storedDelivery(edge, one('web'), version));
  if (first === undefined || second === undefined) throw new Error('two versions');
  send({ type: 'add', object: old });
  let isShown = false;
  const shown = packages.shows([second], [old], clock).then(() => {
    isShown = true;
  });
  send({ type: 'add', object: first });
  send({ type: 'delete', object: old });
  await settle();
  expect(isShown).toBe(false);
  send({ type: 'update', object: second, old: first });
  await shown;
  await packages.shows([first, second], [old], clock);
  expect(clock.pending).toBe(0);
});

test('a writer does not wait for ever', async () => {
  const clock = new ManualClock();
  const shown = followed().packages.shows([storedDelivery(edge, one('web'))], [], clock);
  const refused = expect(shown).rejects.toMatchObject({ code: 'Timeout' });
  clock.advance(10_000);
  await refused;
});
