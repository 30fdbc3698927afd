import { beforeEach, describe, expect, test } from 'vitest';
import { deliveredOf } from '../../../src/delivery/delivered/list-delivered.ts';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import { CONTEXT, controllerOn, publish, publishNext, remove, statusOf } from '../../../test/support/delivery.ts';
import { site, useDeliveryWorld, world } from '../../../test/support/delivery-world.ts';
import { git as gitCli } from '../../../test/support/git/git-cli.ts';

const KEY = { namespace: 'default', name: 'edge' };
const WRITES = ['create', 'update', 'delete', 'updateStatus'] as const;

useDeliveryWorld();
beforeEach(async () => {
  await world.client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo: site, directory: 'clusters/edge' }, allowPrune: true },
  });
});

const head = () => gitCli(site, ['rev-parse', 'main']);
const objects = async () => (await world.client.list(packageDeliveryKind)).items;

/** A client that fails from its n-th write of a target or of a package on, as that of a process that is killed there. */
function dyingClient(client: Client, writes: number): { readonly client: Client; readonly made: string[] } {
  const made: string[] = [];
  const wrap = (inner: Client): Client =>
    new Proxy(inner, {
      get(of, name) {
        if (name === 'as') return (...args: Parameters<Client['as']>) => wrap(of.as(...args));
        const value: unknown = Reflect.get(of, name);
        if (typeof value !== 'function') return value;
        if (!WRITES.some((write) => write === name)) return value.bind(of);
        return async (kind: { readonly plural: string }, ...args: unknown[]) => {
          if (made.length >= writes) throw new SluiceError('Unavailable', 'the process was killed');
          made.push(`${String(name)} ${kind.plural}`);
          return value.call(of, kind, ...args);
        };
      },
    });
  return { client: wrap(client), made };
}

const reconcile = (client = world.client) => controllerOn(world, { client }).reconcile(KEY, CONTEXT);

test('an object records each package, and only those that differ are written', async () => {
  const web = await publish(world, 'web');
  await publish(world, 'db');
  await reconcile();
  const [db, first] = await objects();
  expect(first).toMatchObject({
    metadata: { namespace: 'default', labels: { 'sluice.dev/target': 'edge' }, ownerReferences: [{ name: 'edge' }] },
    spec: { target: 'edge', repository: 'apps', package: 'web' },
    status: {
      ...{ revision: 1, commit: world.store.get(web).commit, folder: 'clusters/edge/web' },
      deliveredAt: '2026-01-01T00:00:00.000Z',
    },
  });
  const { made, client } = dyingClient(world.client, 100);
  await reconcile(client);
  expect(made).toEqual([]);
  await publishNext(world, web, 'w2', '2');
  await reconcile(client);
  expect(made).toEqual(['update packagedeliveries', 'updateStatus deliverytargets']);
  const [same, second] = await objects();
  expect(same).toEqual(db);
  expect(second?.status?.revision).toBe(2);
  expect(second?.metadata.uid).toBe(first?.metadata.uid);
});

test('a process that dies after any write leaves what the next one completes', async () => {
  const web = await publish(world, 'web');
  const db = await publish(world, 'db');
  const rounds = [
    () => Promise.resolve(),
    async () => {
      await publishNext(world, web, 'w2', '2');
      await publish(world, 'dns');
    },
    () => remove(world, db),
  ];
  const wanted = [
    ['db v1', 'web v1'],
    ['db v1', 'dns v1', 'web v2'],
    ['dns v1', 'web v2'],
  ];
  for (const [round, change] of rounds.entries()) {
    await change();
    for (let writes = 0; ; writes += 1) {
      // Objects of an attempt before stay, so each attempt gets one write further.
      const { client } = dyingClient(world.client, Math.min(writes, 1));
      const isComplete = await reconcile(client).then(
        () => true,
        () => false,
      );
      if (isComplete) break;
      expect(writes, 'every attempt makes progress').toBeLessThan(10);
      expect((await statusOf(world)).packages.length, 'a reader reads the mixture').toBeLessThan(4);
    }
    const { status, packages } = await statusOf(world);
    expect(packages.map((one) => `${one.package} v${one.revision}`)).toEqual(wanted[round]);
    expect(status).toMatchObject({ lastCommit: head(), packageCount: packages.length });
  }
  expect(Number(gitCli(site, ['rev-list', '--count', 'main'])), 'the first one and one for each change').toBe(4);
});

test('a commit of another folder does not change the last delivered commit', async () => {
  await publish(world, 'web');
  await reconcile();
  const delivered = head();
  await world.push(site, { 'other/file.txt': 'x' });
  await reconcile();
  expect((await statusOf(world)).status?.lastCommit).toBe(delivered);
});

test('objects that another writer changed, created or deleted are repaired', async () => {
  await publish(world, 'web');
  await publish(world, 'db');
  await reconcile();
  const { packages } = await statusOf(world);
  const [db, web] = await objects();
  if (db?.status === undefined || web === undefined) throw new Error('two objects');
  await world.client.delete(packageDeliveryKind, web.metadata);
  const metadata = { ...db.metadata, ownerReferences: [] };
  await world.client.update(packageDeliveryKind, { ...db, metadata, status: { ...db.status, revision: 7 } });
  expect((await statusOf(world)).packages).toEqual([]);
  await reconcile();
  expect((await statusOf(world)).packages).toEqual(packages);
});

test('a target with the name of a deleted one takes over its objects', async () => {
  await publish(world, 'web');
  await reconcile();
  const { spec, metadata } = await world.client.delete(deliveryTargetKind, KEY);
  const next = await world.client.create(deliveryTargetKind, { metadata: { name: 'edge' }, spec });
  expect(next.metadata.uid).not.toBe(metadata.uid);
  expect((await statusOf(world)).packages).toEqual([]);
  await reconcile();
  expect((await statusOf(world)).packages).toMatchObject([{ package: 'web', revision: 1 }]);
  expect(await objects()).toMatchObject([{ metadata: { ownerReferences: [{ uid: next.metadata.uid }] } }]);
});

describe('the list that earlier versions wrote into the status', () => {
  const listed = ['db', 'web'].map((path) => ({
    ...{ repository: 'gone', package: path, revision: 3, commit: 'c'.repeat(40), tree: 't'.repeat(40) },
  }));
  const writeList = async (change: object = {}) => {
    const target = await world.client.get(deliveryTargetKind, KEY);
    const { client } = world;
    const next = await client.update(deliveryTargetKind, { ...target, spec: { ...target.spec, ...change } });
    await client.updateStatus(deliveryTargetKind, { ...next, status: { lastCommit: head(), packages: listed } });
  };

  test('becomes objects, at any crash, and is then removed, also where nothing is delivered', async () => {
    await writeList({ suspend: true });
    expect((await statusOf(world)).packages).toEqual(listed);
    for (let writes = 0; writes < 3; writes += 1) {
      const { client } = dyingClient(world.client, 1);
      await reconcile(client).catch(() => undefined);
      expect((await statusOf(world)).packages).toEqual(listed);
    }
    await reconcile();
    const { status, packages, reason } = await statusOf(world);
    expect(packages).toEqual(listed);
    expect(status).toMatchObject({ lastCommit: head(), packageCount: 2 });
    expect(status?.packages).toBeUndefined();
    expect(reason).toBe('Suspended');
    expect(await objects()).toHaveLength(2);
  });

  test('is what the target delivered before, so that it is known which packages are no longer selected', async () => {
    await writeList();
    await publish(world, 'dns');
    await reconcile();
    const target = await world.client.get(deliveryTargetKind, KEY);
    expect(target.status?.packages).toBeUndefined();
    expect(await deliveredOf(world.client, undefined, target)).toMatchObject([{ package: 'dns', revision: 1 }]);
    expect(await objects()).toHaveLength(1);
  });
});

test('a new directory and another selection change the objects', async () => {
  await publish(world, 'web');
  await publish(world, 'db');
  await reconcile();
  const target = await world.client.get(deliveryTargetKind, KEY);
  const spec = { ...target.spec, selector: { packages: ['db'] }, git: { ...target.spec.git, directory: 'other' } };
  await world.client.update(deliveryTargetKind, { ...target, spec });
  await reconcile();
  expect(await objects()).toMatchObject([{ spec: { package: 'db' }, status: { folder: 'other/db' } }]);
});
