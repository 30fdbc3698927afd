import { beforeEach, expect, test } from 'vitest';
import type { ControllerOptions } from '../../../src/controller/controller.ts';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { findCondition } from '../../../src/resource/object/condition.ts';
import {
  CONTEXT,
  configMap,
  controllerOn,
  filesOf,
  publish,
  publishNext,
  remove,
  statusOf,
  type TargetSpec,
} from '../../../test/support/delivery.ts';
import { site, useDeliveryWorld, world } from '../../../test/support/delivery-world.ts';
import { git as gitCli } from '../../../test/support/git/git-cli.ts';

let controller: ControllerOptions;
useDeliveryWorld();
beforeEach(() => {
  controller = controllerOn(world);
});

const FILE = 'clusters/edge/web/cm.yaml';
const BY_HAND = configMap('web', 'by hand');
const reconcile = () => controller.reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
const create = (spec: Partial<TargetSpec> = {}) =>
  world.client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo: site, directory: 'clusters/edge' }, ...spec },
  });
const change = (spec: Partial<TargetSpec>) => world.client.patch(deliveryTargetKind, { name: 'edge' }, { spec });
const show = (path: string) => gitCli(site, ['show', `main:${path}`]);
const head = () => gitCli(site, ['rev-parse', 'main']);
const drifted = async () => findCondition((await statusOf(world)).status?.conditions, 'Drifted');
const driftEvents = async () => (await world.events('edge')).filter((event) => event.startsWith('Drifted'));

test('trailers in the commit of another writer hide no change', async () => {
  await publish(world, 'web');
  await create({ drift: 'Report' });
  await reconcile();
  const delivery = gitCli(site, ['log', '-1', '--format=%B', 'main']);
  for (const message of ['x\n\nSluice-Target: someone/else\n', delivery.replaceAll('web', 'other'), delivery]) {
    await world.push(site, { [FILE]: configMap('web', message.slice(0, 9)) });
    const isEmpty = message === delivery;
    const made = gitCli(site, [
      ...(isEmpty ? ['commit-tree', 'main^{tree}', '-p', 'main'] : ['commit-tree', 'main^{tree}', '-p', 'main^']),
      ...['-m', message],
    ]).trim();
    gitCli(site, ['update-ref', 'refs/heads/main', made]);
    await reconcile();
    expect((await drifted())?.status, message).toBe('True');
    expect(head()).toBe(made);
  }
});

test('by default a change is repaired, and an event has its commit, its author and the difference', async () => {
  await publish(world, 'web');
  await create();
  await reconcile();
  const commit = await world.push(site, { [FILE]: BY_HAND });
  await reconcile();
  expect(show(FILE)).toContain('value: "1"');
  const [event = '', ...others] = await driftEvents();
  expect(others).toEqual([]);
  expect(event).toContain(`Drifted: repaired: clusters/edge/web (v1) was changed by commit ${commit} by `);
  expect(event).toContain('-  value: "1"\n+  value: "by hand"');
  expect(await drifted()).toBeUndefined();
  await reconcile();
  expect(await driftEvents()).toHaveLength(1);
});

test('with Report a change stays and is reported until it is reverted; other packages are delivered', async () => {
  await publish(world, 'web');
  await create({ drift: 'Report' });
  await reconcile();
  await world.push(site, { [FILE]: BY_HAND, 'clusters/edge/web/more.yaml': configMap('more') });
  const edited = head();
  for (const _ of [1, 2, 3]) await reconcile();
  expect(head()).toBe(edited);
  expect(await driftEvents()).toEqual([expect.stringContaining('Drifted: kept: clusters/edge/web (v1)')]);
  const condition = await drifted();
  expect(condition).toMatchObject({ status: 'True', reason: 'ChangedByOthers' });
  expect(condition?.message).toContain('another writer changed 1 folder, which stays so; publish a new revision');
  expect(condition?.message).toContain('+  value: "by hand"\n');
  expect(condition?.message).toContain('+++ b/clusters/edge/web/more.yaml\n');
  const { packages } = await statusOf(world);
  expect(packages).toMatchObject([{ package: 'web', revision: 1 }]);

  await publish(world, 'db');
  await reconcile();
  // Also after a restart, and above a commit of Sluice.
  controller = controllerOn(world);
  await reconcile();
  expect(show(FILE)).toContain('by hand');
  expect(filesOf(site)).toContain('clusters/edge/db/cm.yaml');
  expect(await drifted()).toMatchObject({ status: 'True' });

  await world.push(site, { [FILE]: configMap('web').replaceAll('"', "'"), 'clusters/edge/web/more.yaml': null });
  await reconcile();
  expect(await drifted()).toMatchObject({ status: 'True' });
  await change({ drift: 'Repair' });
  await reconcile();
  expect(show(FILE)).toContain('value: "1"');
  expect(await drifted()).toMatchObject({ status: 'False', reason: 'AsDelivered' });
});

test('a publication overwrites a change, and a deletion removes it', async () => {
  const first = await publish(world, 'web');
  await create({ drift: 'Report', allowPrune: true });
  await reconcile();
  await world.push(site, { [FILE]: BY_HAND });
  await reconcile();
  const second = await publishNext(world, first, 'w2', '2');
  await reconcile();
  expect(show(FILE)).toContain('value: "2"');
  expect(await drifted()).toMatchObject({ status: 'False' });
  await world.push(site, { [FILE]: BY_HAND });
  await reconcile();
  expect(await drifted()).toMatchObject({ status: 'True' });
  await remove(world, second);
  await remove(world, first);
  await reconcile();
  expect(filesOf(site)).toEqual([]);
});

test('a removed folder and a reverted delivery are changes too; a new target directory and an older branch are not', async () => {
  const first = await publish(world, 'web');
  await create({ drift: 'Report' });
  await reconcile();
  const [cm, list] = [show(FILE), show('clusters/edge/web/kustomization.yaml')];
  const delivered = head();
  await world.push(site, { [FILE]: null, 'clusters/edge/web/kustomization.yaml': null });
  await reconcile();
  expect(filesOf(site)).toEqual([]);
  expect(await drifted()).toMatchObject({ status: 'True' });
  await publishNext(world, first, 'w2', '2');
  await reconcile();
  expect(show(FILE)).toContain('value: "2"');
  await world.push(site, { [FILE]: `${cm}\n`, 'clusters/edge/web/kustomization.yaml': `${list}\n` });
  await reconcile();
  expect(show(FILE)).toContain('value: "1"');
  expect(await drifted()).toMatchObject({ status: 'True' });
  // As after a restore from a backup.
  gitCli(site, ['update-ref', 'refs/heads/main', delivered]);
  await reconcile();
  expect(show(FILE)).toContain('value: "2"');
  expect(await drifted()).toMatchObject({ status: 'False' });
  await change({ git: { repo: site, directory: 'elsewhere' } });
  await reconcile();
  expect(filesOf(site)).toContain('elsewhere/web/cm.yaml');
  expect(await drifted()).toMatchObject({ status: 'False' });
});

test('the contents of a Secret are neither in events nor in conditions', async () => {
  const secret = (key: string) =>
    `apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: n\nstringData:\n  key: ${key}\n`;
  await publish(world, 'web', '1', { 'secret.yaml': secret('hunter2') });
  await create({ drift: 'Report', allowSecrets: true });
  await reconcile();
  const large = `${secret('hunter4')}  # ${'x'.repeat(70_000)}\n`;
  const folder = 'clusters/edge/web';
  await world.push(site, {
    [`${folder}/secret.yaml`]: secret('hunter3'),
    [`${folder}/large.yaml`]: large,
    [`${folder}/.env`]: 'PGPASSWORD=hunter5\n',
    [`${folder}/list.json`]: '{"kind": "List", "items": [{"kind": "Sec\\u0072et", "data": {"a": "hunter6"}}]}',
    [`${folder}/cm.yaml`]: 'kind: ConfigMap\ndata:\n  a: shown\n',
  });
  await reconcile();
  const text = `${JSON.stringify(await drifted())} ${(await driftEvents()).join()}`;
  expect(text).toContain('Modified clusters/edge/web/secret.yaml (not shown: it may contain a Secret)');
  expect(text).not.toContain('hunter');
  expect(text).toContain('shown\\n');
});

test('a change that arrives between reading the branch and committing to it is kept', async () => {
  await publish(world, 'web');
  await create({ drift: 'Report' });
  await reconcile();
  await publish(world, 'db');
  const { store } = world;
  let pushed = false;
  const edited = await world.push(site, { [FILE]: BY_HAND }, 'edited', 'refs/heads/main');
  controller = controllerOn(world, {
    store: {
      repositories: () => {
        if (!pushed) gitCli(site, ['update-ref', 'refs/heads/main', edited]);
        pushed = true;
        return store.repositories();
      },
    },
  });
  await reconcile();
  expect(show(FILE)).toContain('by hand');
  expect(filesOf(site)).toContain('clusters/edge/db/cm.yaml');
  expect(await drifted()).toMatchObject({ status: 'True' });
});

test('a crash between the commit and the status is no change by another writer', async () => {
  const first = await publish(world, 'web');
  await create({ drift: 'Report' });
  await reconcile();
  const { status } = await world.client.get(deliveryTargetKind, { name: 'edge' });
  await publishNext(world, first, 'w2', '2');
  await reconcile();
  const now = await world.client.get(deliveryTargetKind, { name: 'edge' });
  await world.client.updateStatus(deliveryTargetKind, { ...now, ...(status && { status }) });
  controller = controllerOn(world);
  await reconcile();
  expect(show(FILE)).toContain('value: "2"');
  expect(await drifted()).toBeUndefined();
  expect((await statusOf(world)).packages).toMatchObject([{ revision: 2 }]);
});
