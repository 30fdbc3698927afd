import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { freezeKind } from '../../src/resource/kinds/sluice/freeze.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { CONTEXT, controllerOn, publish, publishNext, statusOf } from '../../test/support/delivery.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';

let clock: ManualClock;
let world: Fixture;
let site: string;
beforeEach(async () => {
  clock = new ManualClock(Date.parse('2026-01-14T10:00:00Z'));
  world = await fixture(clock);
  await world.register('apps');
  site = await world.bare('site');
  await world.client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo: site, directory: 'edge' } },
  });
});
afterEach(() => world[Symbol.asyncDispose]());

const KEY = { namespace: 'default', name: 'edge' };
const commits = () => Number(gitCli(site, ['rev-list', '--count', 'main']));
const freeze = (namespace: string, until?: string) =>
  world.client.create(freezeKind, {
    metadata: { name: 'stop', namespace },
    spec: { reason: 'core repair', ...(until === undefined ? {} : { until }) },
  });
const frozen = async () => {
  const { conditions } = (await statusOf(world)).status ?? {};
  return findCondition(conditions, 'Frozen');
};

test.each(['default', 'sluice-system'])(
  'a Freeze in %s stops the delivery, with a condition and an event',
  async (namespace) => {
    const controller = controllerOn(world);
    await publish(world, 'web');
    await freeze(namespace, '2026-01-14T10:01:00Z');
    expect(await controller.reconcile(KEY, CONTEXT)).toMatchObject({ requeueAfter: 60_000 });
    expect(commits()).toBe(1);
    expect(await frozen()).toMatchObject({
      status: 'True',
      message: expect.stringContaining(`Freeze ${namespace}/stop`),
    });
    expect((await statusOf(world)).reason).toBe('Frozen');
    expect(await world.events('edge')).toEqual([expect.stringMatching(/^Frozen: nothing is delivered: .*core repair/)]);
    clock.advance(60_000);
    await controller.reconcile(KEY, CONTEXT);
    expect(commits()).toBe(2);
    expect(await frozen()).toMatchObject({ status: 'False', reason: 'NoFreeze' });
  },
);

test('a Freeze of another namespace stops nothing', async () => {
  await publish(world, 'web');
  await freeze('team-b');
  await controllerOn(world).reconcile(KEY, CONTEXT);
  expect(commits()).toBe(2);
  expect(await frozen()).toBeUndefined();
});

test('a Freeze that begins during a delivery stops its push; the next delivery has everything', async () => {
  const first = await publish(world, 'web');
  await controllerOn(world).reconcile(KEY, CONTEXT);
  await publishNext(world, first, 'w2', 'later');
  let created = false;
  const targetObjects = {
    set: async () => {
      if (!created) await freeze('default');
      created = true;
    },
    forget: () => undefined,
  };
  const controller = controllerOn(world, { targetObjects: targetObjects as never });
  await controller.reconcile(KEY, CONTEXT);
  expect(commits()).toBe(2);
  expect(await frozen()).toMatchObject({ status: 'True' });
  await world.client.delete(freezeKind, { namespace: 'default', name: 'stop' });
  await controller.reconcile(KEY, CONTEXT);
  expect(commits()).toBe(3);
  expect(gitCli(site, ['show', 'main:edge/web/cm.yaml'])).toContain('later');
});
