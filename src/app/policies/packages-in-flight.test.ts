import { afterEach, beforeEach, expect, test } from 'vitest';
import { CONTEXT, controllerOn, publish, publishNext, remove } from '../../../test/support/delivery.ts';
import { ANNA, type Fixture, fixture } from '../../../test/support/fixture.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { ObjectReaders } from './object-readers.ts';
import { PackagesInFlight } from './packages-in-flight.ts';
import { policyOf } from './session-policy.ts';

let world: Fixture;
let readers: ObjectReaders;
let inFlight: PackagesInFlight;
let approved: string;

beforeEach(async () => {
  world = await fixture();
  await world.register('apps');
  readers = new ObjectReaders({ client: world.client, clock: systemClock });
  inFlight = new PackagesInFlight(world.store, readers);
  readers.inFlight = inFlight;
  await readers.start();
  await world.client.create(packagePolicyKind, {
    metadata: { name: 'p' },
    spec: { selector: { packages: ['web', 'shop', 'own'] }, approval: { maxInFlight: 1 } },
  });
  await target('edge');
  approved = (await world.draft('apps/own/w1')).name;
});
afterEach(async () => {
  await readers.stop();
  await world[Symbol.asyncDispose]();
});

async function target(name: string, spec: object = {}): Promise<void> {
  const site = await world.bare(name);
  await world.client.create(deliveryTargetKind, {
    metadata: { name },
    spec: { selector: {}, git: { repo: site }, ...spec },
  });
}
const deliver = (name = 'edge') => controllerOn(world).reconcile({ namespace: 'default', name }, CONTEXT);
async function counted(): Promise<readonly string[]> {
  await Promise.all([readers.policies, readers.targets, readers.deliveries].map((reader) => reader.refresh()));
  const [rule] = policyOf(readers, world.store.get(approved), 'default').approvalRules;
  return (rule?.inFlight ?? []).map(({ name }) => name);
}

test('a package is in flight from its publication until its target has delivered it', async () => {
  expect(await counted()).toEqual([]);
  const web = await publish(world, 'web');
  await publish(world, 'unselected');
  expect(await counted()).toEqual([web]);
  await deliver();
  expect(await counted()).toEqual([]);
  const next = await publishNext(world, web, 'w2', '2');
  expect(await counted()).toEqual([next]);
  await deliver();
  expect(await counted()).toEqual([]);
});

const key = (name: string) => ({ namespace: 'default', name });
const change = (name: string, spec: object) => world.client.patch(deliveryTargetKind, key(name), { spec });
const pin = (name: string, revision: number) => ({ pins: [{ repository: 'apps', package: name, revision }] });

/** As if the engine reported all packages of a target as healthy. */
async function reportHealthy(name: string): Promise<void> {
  const target = await world.client.get(deliveryTargetKind, key(name));
  const good = { status: 'True', reason: 'Good', message: '', since: '2026-01-01T00:00:00Z' } as const;
  const common = { synced: good, healthy: good };
  const commit = target.status?.lastCommit;
  const deployment = { ...common, delivered: good, common, ...(commit === undefined ? {} : { commit }) };
  await world.client.updateStatus(deliveryTargetKind, { ...target, status: { ...target.status, deployment } });
}

test('all targets count, with what their engines report', async () => {
  await target('west');
  const web = await publish(world, 'web');
  await deliver();
  expect(await counted()).toEqual([web]);
  await deliver('west');
  expect(await counted()).toEqual([]);
  // Without a report of its engine a target has not finished.
  await target('east', { selector: { packages: ['shop'] }, engine: { type: 'CommitStatus' } });
  const shop = await publish(world, 'shop');
  for (const name of ['edge', 'west', 'east']) await deliver(name);
  expect(await counted()).toEqual([shop]);
  await reportHealthy('east');
  expect(await counted()).toEqual([]);
});

test('a package stays in flight while the labels of its repository are not known, by which a target selects it', async () => {
  const labels = { env: 'prod' };
  await world.client.patch(repositoryKind, key('apps'), { metadata: { labels } });
  await target('west', { selector: { repositorySelector: { matchLabels: labels } } });
  await readers.repositories.refresh();
  const web = await publish(world, 'web');
  await deliver();
  expect(await counted()).toEqual([web]);
  // The store has the packages of a repository that is unregistered until it is closed.
  await world.client.delete(repositoryKind, key('apps'));
  await readers.repositories.refresh();
  expect(await counted()).toEqual([web]);
});

test('a pin at the revision in flight, or at one that is not delivered, ends nothing', async () => {
  await target('east', { engine: { type: 'CommitStatus' } });
  const web = await publish(world, 'web');
  for (const name of ['edge', 'east']) await deliver(name);
  for (const revision of [1, 7]) {
    await change('east', pin('web', revision));
    expect(await counted()).toEqual([web]);
    await deliver('east');
    expect(await counted()).toEqual([web]);
  }
});

test('a package whose pin ends is in flight again', async () => {
  const web = await publish(world, 'web');
  await deliver();
  const next = await publishNext(world, web, 'w2', '2');
  expect(await counted()).toEqual([next]);
  await change('edge', pin('web', 1));
  expect(await counted()).toEqual([]);
  await change('edge', { pins: null });
  expect(await counted()).toEqual([next]);
  await deliver();
  expect(await counted()).toEqual([]);
});

test('a package that a target selects again is in flight again', async () => {
  const web = await publish(world, 'web');
  await change('edge', { selector: { packages: ['shop'] } });
  expect(await counted()).toEqual([]);
  await change('edge', { selector: { packages: ['shop', 'web'] } });
  expect(await counted()).toEqual([web]);
  await world.client.delete(deliveryTargetKind, key('edge'));
  expect(await counted()).toEqual([]);
  await world.client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo: world.folder } },
  });
  expect(await counted()).toEqual([web]);
});

test('another setting brings nothing that was delivered into flight', async () => {
  await publish(world, 'web');
  await deliver();
  expect(await counted()).toEqual([]);
  await change('edge', { description: 'the first site' });
  expect(await counted()).toEqual([]);
});

test('a proposal to delete the revision ends nothing', async () => {
  const web = await publish(world, 'web');
  await world.store.update(web, { action: 'propose-deletion' }, ANNA);
  expect(await counted()).toEqual([web]);
});

test('it ends with the deletion of the revision', async () => {
  const web = await publish(world, 'web');
  expect(await counted()).toEqual([web]);
  await remove(world, web);
  expect(await counted()).toEqual([]);
});

test('of approvals that are decided at once, only those that began before count', async () => {
  expect(await counted()).toEqual([]);
  const [web, shop] = [await world.draft('apps/web/w1'), await world.draft('apps/shop/w1')];
  const ofRevision = (name: string) =>
    policyOf(readers, world.store.get(name), 'default').approvalRules[0]?.inFlight.map((one) => one.name);
  const ends = [inFlight.reserve(web), inFlight.reserve(shop)];
  expect(ofRevision(web.name)).toEqual([]);
  expect(ofRevision(shop.name)).toEqual([web.name]);
  for (const end of ends) end();
  expect(ofRevision(shop.name)).toEqual([]);
});

test('a package whose next approval is being decided counts once, as published', async () => {
  const web = await publish(world, 'web');
  inFlight.reserve({ ...world.store.get(web), name: 'apps.web.w2' });
  await counted();
  const [rule] = policyOf(readers, world.store.get(approved), 'default').approvalRules;
  expect(rule?.inFlight).toEqual([{ name: web, publishedAt: expect.any(Number) }]);
});
