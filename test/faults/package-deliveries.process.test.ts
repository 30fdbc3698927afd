import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { dataFolder } from '../../src/app/data/data-folder.ts';
import { ObjectSet } from '../../src/app/data/object-set.ts';
import { type CliFixture, cliFixture } from '../../src/cli/testing.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import {
  type PackageDelivery,
  packageDeliveryKind,
} from '../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import { eventually } from '../support/api/eventually.ts';
import { RunningUp } from '../support/api/running-up.ts';

const DELIVERIES = '/apis/sluice.dev/v1alpha1/namespaces/default/packagedeliveries';
const TARGETS = '/apis/sluice.dev/v1alpha1/namespaces/default/deliverytargets';
const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
const KEY = { namespace: 'default', name: 'edge' };

let cli: CliFixture;
let up: RunningUp | undefined;

beforeEach(async () => {
  cli = await cliFixture();
  cli.bare('site.git');
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  for (const name of ['web', 'net/upf']) await publish(name);
});
afterEach(async () => {
  await up?.[Symbol.asyncDispose]();
  await cli[Symbol.asyncDispose]();
});

async function publish(name: string): Promise<void> {
  const revision = `packages.${name.replaceAll('/', '.')}.v1`;
  for (const words of [
    ['init', name, '--repository', 'packages', '--workspace', 'v1'],
    ['propose', revision],
    ['approve', revision],
  ])
    expect(await cli.run('rpkg', ...words), words.join(' ')).toMatchObject({ code: 0 });
}

const head = () => cli.git('site.git', 'rev-parse', 'main').trim();

async function start(): Promise<RunningUp> {
  up = await RunningUp.start(cli.data);
  return up;
}

/** Waits until a target has recorded exactly these packages, and the commit that the branch has. */
async function recorded({ api }: RunningUp, packages: readonly string[]): Promise<readonly PackageDelivery[]> {
  const { items } = await eventually(
    async () => {
      const { body } = await api.list(`${DELIVERIES}?labelSelector=sluice.dev%2Ftarget%3Dedge`);
      const target = (await api.get(`${TARGETS}/edge`)).body as unknown as DeliveryTarget;
      return { items: body.items as unknown as PackageDelivery[], status: target.status };
    },
    ({ items, status }) =>
      items
        .map(({ spec }) => spec.package)
        .sort()
        .join() === packages.join() &&
      status?.packageCount === packages.length &&
      status.packages === undefined &&
      status.lastCommit === head(),
  );
  return items;
}

test('the objects of delivered packages are shown, guarded, completed after a kill, made from the list of earlier versions, and removed with their target', async () => {
  let running = await start();
  const spec = { selector: {}, git: { repo: join(cli.folder, 'site.git'), directory: 'clusters' } };
  expect((await running.api.post(TARGETS, { metadata: { name: 'edge' }, spec })).status).toBe(201);
  const [upf] = (await recorded(running, ['net/upf', 'web'])).filter((one) => one.spec.package === 'net/upf');
  expect(upf?.status).toMatchObject({ revision: 1, folder: 'clusters/net/upf' });
  const { body: table } = await running.api.get(DELIVERIES, TABLE);
  const { columnDefinitions, rows } = table as unknown as {
    readonly columnDefinitions: readonly { readonly name: string }[];
    readonly rows: readonly { readonly cells: readonly unknown[] }[];
  };
  expect(columnDefinitions.map(({ name }) => name)).toEqual(
    ...[['Name', 'Target', 'Package', 'Revision', 'Commit', 'Age']],
  );
  expect(rows[0]?.cells.slice(1, 5)).toEqual(['edge', 'net/upf', 1, upf?.status?.commit.slice(0, 12)]);

  // A user with the role `admin` of the namespace reads them, and no more.
  const binding = {
    metadata: { name: 'eve' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'eve' }],
  };
  const bindings = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings';
  expect((await running.api.post(bindings, binding)).status).toBe(201);
  const headers = { 'impersonate-user': 'eve' };
  const path = `${DELIVERIES}/${upf?.metadata.name}`;
  expect((await running.api.get(path, headers)).status).toBe(200);
  const body = { ...upf, status: { ...upf?.status, revision: 9 } };
  for (const [method, place] of [
    ['PUT', path],
    ['DELETE', path],
    ['POST', DELIVERIES],
  ] as const)
    expect((await running.api.send(method, place, { headers, body })).status, method).toBe(403);

  // Killed as soon as the branch has the next delivery.
  const before = head();
  const commits = () => Number(cli.git('site.git', 'rev-list', '--count', 'main'));
  const count = commits();
  await publish('dns');
  await expect.poll(head, { interval: 1 }).not.toBe(before);
  await running.end('SIGKILL');
  running = await start();
  await recorded(running, ['dns', 'net/upf', 'web']);
  expect(commits(), 'one commit for one delivery').toBe(count + 1);
  expect(await running.end()).toBe(0);

  const listed = await asEarlierVersion();
  running = await start();
  const made = await recorded(running, ['dns', 'net/upf', 'web']);
  expect(made.map(({ status }) => status?.commit).sort()).toEqual(listed.map(({ commit }) => commit).sort());

  expect((await running.api.delete(`${TARGETS}/edge`)).status).toBe(200);
  await eventually(
    () => running.api.list(DELIVERIES),
    ({ body: list }) => list.items.length === 0,
  );
  expect(running.ownFailures()).toEqual([]);
});

/** Replaces the objects by the list in the status that earlier versions wrote. */
async function asEarlierVersion() {
  const objects = await ObjectSet.open({ folder: dataFolder(cli.data), clock: systemClock, write: true });
  try {
    const client = objects.client({ name: 'sluice' });
    const { items } = await client.list(packageDeliveryKind);
    const packages = items.flatMap(({ spec: { repository, package: path }, status }) =>
      status === undefined
        ? []
        : { repository, package: path, revision: status.revision, commit: status.commit, tree: status.tree },
    );
    for (const { metadata } of items) await client.delete(packageDeliveryKind, metadata);
    const target = await client.get(deliveryTargetKind, KEY);
    const { packageCount: _, packagesDigest: __, ...status } = target.status ?? {};
    await client.updateStatus(deliveryTargetKind, { ...target, status: { ...status, packages } });
    return packages;
  } finally {
    await objects.close();
  }
}
