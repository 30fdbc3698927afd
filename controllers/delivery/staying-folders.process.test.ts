import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { listDelivered } from '../../src/delivery/delivered/list-delivered.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { CONTEXT, configMap, controllerOn, publish, publishRefused, squashMain } from '../../test/support/delivery.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';

const KEY = { namespace: 'default', name: 'edge' };
const FILE = 'clusters/edge/web/cm.yaml';
const BY_HAND = configMap('web', 'by hand');

let world: Fixture;
let site: string;
let controller: ControllerOptions;
/** A repository that is not ready. */
let away: string | undefined;

beforeEach(async () => {
  world = await fixture();
  await world.register('apps');
  await world.register('infra');
  site = await world.bare('site');
  away = undefined;
  const repositories = () => world.store.repositories().filter(({ repository }) => repository !== away);
  controller = controllerOn(world, { store: { repositories } });
  await publishIn('infra', 'db');
});
afterEach(() => world[Symbol.asyncDispose]());

const deliver = () => controller.reconcile(KEY, CONTEXT);
const target = () => world.client.get(deliveryTargetKind, KEY);
const shown = () => gitCli(site, ['show', `main:${FILE}`]);

async function publishIn(repository: string, path: string): Promise<void> {
  const { name } = await world.draft(`${repository}/${path}/w1`, { 'cm.yaml': configMap(path) });
  await world.publish(name);
}

async function createTarget(drift: 'Repair' | 'Report' = 'Repair'): Promise<void> {
  const spec = { selector: {}, git: { repo: site, directory: 'clusters/edge' }, drift };
  await world.client.create(deliveryTargetKind, { metadata: { name: 'edge' }, spec: spec as never });
  await deliver();
}

/** The objects of packages, as `db`, or `web drifted`. */
async function delivered(): Promise<string[]> {
  const object = await target();
  const packages = (await listDelivered(world.client, object)).of(object);
  expect(object.status?.packageCount).toBe(packages.length);
  return packages.map((one) => (one.drifted === true ? `${one.package} drifted` : one.package)).sort();
}

test.each(['that is not ready', 'that was unregistered'])(
  'packages of a repository %s stay reported until their folders are removed by hand',
  async (state) => {
    await publish(world, 'web');
    await createTarget();
    const before = await target();
    if (state === 'that is not ready') away = 'apps';
    else await world.store.remove('apps');
    await deliver();
    const { packageCount, packagesDigest, lastCommit, conditions } = (await target()).status ?? {};
    expect({ packageCount, packagesDigest, lastCommit }).toEqual({
      ...{ packageCount: 2, packagesDigest: before.status?.packagesDigest, lastCommit: before.status?.lastCommit },
    });
    expect(findCondition(conditions, 'Ready')).toMatchObject({ status: 'False', reason: 'Partial' });
    await publishIn('infra', 'dns');
    await deliver();
    expect(await delivered()).toEqual(['db', 'dns', 'web']);
    const names = gitCli(site, ['ls-tree', '-r', '--name-only', 'main', 'clusters/edge/web']).trim().split('\n');
    await world.push(site, Object.fromEntries(names.map((name) => [name, null])));
    await deliver();
    expect(await delivered()).toEqual(['db', 'dns']);
  },
);

test('the changed folder of a refused package stays drifted while its repository is away, and after it', async () => {
  const first = await publish(world, 'web');
  await createTarget();
  await publishRefused(world, first);
  await deliver();
  await world.push(site, { [FILE]: BY_HAND });
  for (const repository of [undefined, 'apps', undefined]) {
    away = repository;
    await deliver();
    expect(await delivered()).toEqual(['db', 'web drifted']);
    expect(shown()).toContain('by hand');
  }
});

test.each(['', 'with the loss of the earlier commits', 'that takes the list of its files away'])(
  'a change to the folder of a package whose repository is away is drift, until it is back %s',
  async (kind) => {
    await publish(world, 'web');
    await createTarget();
    away = 'apps';
    const list = kind.includes('list') ? { 'clusters/edge/web/kustomization.yaml': null } : {};
    await world.push(site, { [FILE]: BY_HAND, ...list });
    if (kind.includes('loss')) squashMain(site);
    // In one commit with the first delivery after the change, and then above it.
    await publishIn('infra', 'dns');
    await deliver();
    expect(await delivered()).toEqual(['db', 'dns', 'web drifted']);
    await deliver();
    expect(await delivered()).toEqual(['db', 'dns', 'web drifted']);
    expect(shown()).toContain('by hand');
    away = undefined;
    await deliver();
    // Without the list the folder is foreign.
    const isRefused = kind.includes('list');
    expect(await delivered()).toEqual(['db', 'dns', isRefused ? 'web drifted' : 'web']);
    expect(shown().includes('by hand')).toBe(isRefused);
  },
);

test('kept changes stay reported while the repository is away', async () => {
  await publish(world, 'web');
  await createTarget('Report');
  await world.push(site, { [FILE]: BY_HAND });
  await deliver();
  const reported = findCondition((await target()).status?.conditions, 'Drifted');
  expect(reported?.status).toBe('True');
  away = 'apps';
  await deliver();
  expect(findCondition((await target()).status?.conditions, 'Drifted')).toEqual(reported);
  expect(await delivered()).toEqual(['db', 'web drifted']);
});

test('a folder that another writer puts into the new directory of a target was not delivered there', async () => {
  const first = await publish(world, 'web');
  await createTarget();
  await publishRefused(world, first);
  await deliver();
  const list = gitCli(site, ['show', 'main:clusters/edge/web/kustomization.yaml']);
  await world.push(site, { 'clusters/west/web/kustomization.yaml': `${list}\n`, 'clusters/west/web/cm.yaml': BY_HAND });
  const git = { repo: site, directory: 'clusters/west' };
  await world.client.patch(deliveryTargetKind, { name: 'edge' }, { spec: { git } } as never);
  await deliver();
  expect(await delivered()).toEqual(['db', 'web drifted']);
});
