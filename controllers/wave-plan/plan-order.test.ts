import { afterEach, beforeEach, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { orderKey } from '../../src/rollout/wave/order-key.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { BY_CONDITION, waveBench } from '../../test/support/wave-bench.ts';

const PACKAGES = ['a', 'b', 'c', 'd'];
const TWO = {
  waves: [
    { name: 'canary', percent: 1, soak: '24h' },
    { name: 'rest', percent: 100 },
  ],
  ...BY_CONDITION,
};

let world: Fixture;

beforeEach(async () => {
  world = await fixture(new ManualClock());
});
afterEach(() => world[Symbol.asyncDispose]());

test('the order of a plan without a salt is not known before it starts, and stays the same from then on', async () => {
  const bench = await waveBench(world);
  await bench.propose(...PACKAGES);
  await bench.plan({ ...TWO, paused: true });
  await bench.settle();
  const keys = async () => (await bench.targets()).map(({ record }) => record?.order.key);
  const before = await keys();
  expect((await bench.read()).status).not.toHaveProperty('salt');
  await bench.settle();
  expect(await keys()).toEqual(before);
  await bench.change({ paused: false });
  await bench.settle();
  const { salt = '' } = (await bench.read()).status ?? {};
  expect(salt).toMatch(/^[0-9a-f]{32}$/);
  expect(await keys()).toEqual(PACKAGES.map((name) => orderKey(`apps/${name}`, salt)));
  expect(await keys()).not.toEqual(before);
  bench.restart();
  await bench.propose('e');
  await bench.settle();
  expect((await bench.read()).status?.salt).toBe(salt);
  expect((await keys()).at(-1)).toBe(orderKey('apps/e', salt));
});

test('a process that ends before the start is recorded leaves an order that does not count', async () => {
  let isBroken = true;
  const salts = ['one', 'two'];
  const bench = await waveBench(world, {
    client: without(world.client, () => isBroken),
    randomSalt: () => salts.shift() ?? 'last',
  });
  await bench.propose(...PACKAGES);
  await bench.plan(TWO);
  await expect(bench.settle()).rejects.toThrow('the process ends here');
  const byFirst = await assigned();
  expect(bench.published()).toEqual([]);
  isBroken = false;
  bench.restart();
  await bench.settle();
  expect((await bench.read()).status?.salt).toBe('two');
  const inOrder = PACKAGES.toSorted((one, other) =>
    orderKey(`apps/${one}`, 'two') < orderKey(`apps/${other}`, 'two') ? -1 : 1,
  );
  expect([byFirst.length, await assigned()]).toEqual([1, inOrder.slice(0, 1)]);
  expect(byFirst).not.toEqual(await assigned());
  expect(bench.published()).toEqual([`${inOrder[0]} v1`]);

  async function assigned(): Promise<string[]> {
    return (await bench.targets()).flatMap(({ spec, record }) => (record?.wave === undefined ? [] : spec.package));
  }
});

test.each(['reject', 'delete'])(
  'a canary wave is not over because users %s its targets while a rule keeps them from being approved',
  async (action) => {
    const bench = await waveBench(world);
    await bench.propose(...PACKAGES);
    const gate = { conditionType: 'example.com/Reviewed', approveOnly: true };
    const spec = { selector: {}, requiredGates: [gate] };
    await world.client.create(packagePolicyKind, { metadata: { name: 'reviewed' }, spec });
    const draft = await world.draft('apps/z/w1', {});
    await expect.poll(() => world.policyFor(draft).requiredGates).toHaveLength(1);
    await bench.plan(TWO);
    const canary = async () => {
      await bench.settle();
      const found = (await bench.targets()).filter(({ record }) => record?.wave !== undefined);
      return found.filter(({ record }) => record?.phase !== 'Skipped').map(({ record }) => record?.revision ?? '');
    };
    const remove = async (name: string) => {
      await world.store.update(name, { action: 'reject' }, ANNA);
      if (action === 'delete') await world.client.delete(packageRevisionKind, { namespace: 'default', name });
    };
    const removed = new Set<string>();
    for (let round = 0; round < 4; round += 1) {
      const members = await canary();
      expect(members).toHaveLength(1);
      for (const name of members) {
        removed.add(name);
        await remove(name);
      }
    }
    expect(removed.size).toBe(4);
    expect(await canary()).toEqual([]);
    const { status } = await bench.read();
    expect(status?.waves.map(({ name, completedMs }) => [name, completedMs])).toEqual([['canary', undefined]]);
    expect(status?.message).toBe(
      'wave canary: its targets were removed before their approval; it waits for others, or until "sluice wave promote" passes it',
    );
    await world.client.delete(packagePolicyKind, { name: 'reviewed' });
    await expect.poll(() => world.policyFor(draft).requiredGates).toEqual([]);
    await bench.propose('e', 'f');
    await expect
      .poll(async () => {
        bench.monotonicMs += 15_000;
        await bench.settle();
        return bench.published().length;
      })
      .toBe(1);
    await bench.verify();
    bench.monotonicMs += 60_000;
    await bench.settle();
    expect(bench.published()).toHaveLength(1);
  },
);

test('a wave without targets is reported', async () => {
  const bench = await waveBench(world);
  await bench.propose(...PACKAGES);
  const [first, last] = TWO.waves;
  await bench.plan({ ...TWO, waves: [{ name: 'none', selector: { packages: ['x'] } }, first, last] });
  await bench.settle();
  expect((await world.events('web')).slice(0, 2)).toEqual([
    expect.stringContaining('WaveStarted: wave none has started with 0 targets'),
    'WaveCompleted: wave none is completed without targets, so that nothing was verified in it',
  ]);
  expect((await bench.read()).status?.waves).toMatchObject([
    { name: 'none', targets: 0, message: 'no target was left for it, or its selector matched none' },
    { name: 'canary', targets: 1 },
  ]);
});

/** A client that cannot record a plan that has started. */
function without(client: Client, isBroken: () => boolean): Client {
  return new Proxy(client, {
    get(target, property) {
      if (property === 'as') return (...actor: Parameters<Client['as']>) => without(target.as(...actor), isBroken);
      if (property === 'updateStatus')
        return (...args: Parameters<Client['updateStatus']>) => {
          if (isBroken() && args[0].kind === wavePlanKind.kind)
            throw new SluiceError('Unavailable', 'the process ends here');
          return target.updateStatus(...args);
        };
      const value = Reflect.get(target, property);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
