import { expect, test } from 'vitest';
import type { InformerEvent } from '../../src/controller/informer-store.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import type { PackageDelivery } from '../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import type { ObjectKey } from '../../src/resource/object/object.ts';
import { storedDelivery, storedTarget } from '../../test/support/delivered.ts';
import { type DeliveredSourceOptions, deliveredSource } from './delivered-source.ts';

const spec = { selector: {}, git: { repo: 'file:///x.git' } };
const target = (name: string) => storedTarget(deliveryTargetKind.complete({ metadata: { name }, spec }));

function started(options: Partial<DeliveredSourceOptions<ObjectKey>> = {}) {
  const clock = new ManualClock();
  const woken: string[] = [];
  const running: Promise<void>[] = [];
  let handler: (event: InformerEvent<PackageDelivery>) => void = () => undefined;
  const informer = {
    addHandler: (added: typeof handler) => {
      handler = added;
      return () => undefined;
    },
  };
  deliveredSource<ObjectKey>({ clock, map: (key) => [key], ...options }).start({
    informer: () => informer as never,
    enqueue: ({ name }) => woken.push(name),
    track: (work) => running.push(work(new AbortController().signal)),
    release: () => undefined,
    prioritize: () => undefined,
  });
  const change = (name: string, path: string) =>
    handler({
      type: 'add',
      object: storedDelivery(target(name), { repository: 'apps', package: path, revision: 1, commit: '', tree: '' }),
    });
  return { clock, woken, running, change };
}

test('a target wakes once for many changes, after they end, and again for a later one', async () => {
  const { clock, woken, running, change } = started();
  for (let index = 0; index < 100; index += 1) change('edge', `p${index}`);
  change('west', 'p');
  expect(running).toHaveLength(2);
  await clock.advanceAsync(249);
  expect(woken).toEqual([]);
  await clock.advanceAsync(1);
  expect(woken).toEqual(['west']);
  await clock.advanceAsync(250);
  expect(woken).toEqual(['west', 'edge']);
  change('edge', 'p');
  await clock.advanceAsync(250);
  expect(woken).toHaveLength(3);
});

test('a target whose packages keep changing wakes every few seconds', async () => {
  const { clock, woken, change } = started();
  for (let passed = 0; passed < 20_000; passed += 100) {
    change('edge', `p${passed}`);
    await clock.advanceAsync(100);
  }
  expect(woken.length).toBeGreaterThanOrEqual(3);
  expect(woken.length).toBeLessThanOrEqual(5);
});

test('events that do not concern the controller wake nothing', async () => {
  const { running, change } = started({ predicate: ({ type }) => type === 'delete' });
  change('edge', 'p');
  expect(running).toEqual([]);
});
