import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { listDelivered } from '../../src/delivery/delivered/list-delivered.ts';
import { decideRollbacks } from '../../src/delivery/rollback/decide-rollbacks.ts';
import type { EngineReports } from '../../src/delivery/status/deployment-status.ts';
import { type EngineReport, state } from '../../src/delivery/status/engine-report.ts';
import {
  deploymentOf,
  type EvaluatedPackage,
  type TargetDeployment,
  targetDeployment,
} from '../../src/delivery/status/target-deployment.ts';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import {
  CONTEXT,
  configMap,
  controllerOn,
  publish,
  publishNext,
  rebaseMain,
  squashMain,
} from '../../test/support/delivery.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';
import { deploymentStatusController } from './deployment-controller.ts';
import { evaluatePackages } from './evaluate-target.ts';

/*
 * One object of the engine deploys web and settings, and both are healthy. Whatever happens before the engine reports the failure of a
 * later revision of settings, web is known as healthy with the content that it has, and settings is not.
 */

const KEY = { namespace: 'default', name: 'edge' };
const EDGE = 'clusters/edge';
const FAILED = state('False', 'Degraded', 'Deployment/settings status: Failed');

let world: Fixture;
let site: string;
let settings: string;
let read: () => EngineReports;
let readBack: ControllerOptions;

beforeEach(async () => {
  world = await fixture(new ManualClock());
  await world.register('apps');
  site = await world.bare('site');
  await publish(world, 'web');
  settings = await publish(world, 'settings');
  await world.client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo: site, directory: EDGE }, engine: { type: 'Flux', name: 'edge' } } as never,
  });
  restart();
  await deliver();
  engineReports(state('True', 'Healthy', ''));
  await evaluate();
  expect((await deployment()).healthy).toMatchObject({ status: 'True' });
});
afterEach(() => world[Symbol.asyncDispose]());

const head = () => gitCli(site, ['rev-parse', 'main']);
const deliver = () => controllerOn(world).reconcile(KEY, CONTEXT);
const evaluate = () => readBack.reconcile(KEY, CONTEXT);

/** Loses what the controller has in memory. */
function restart(): void {
  const { client, store, clock, folder } = world;
  readBack = deploymentStatusController({
    ...{ client, store, clock, window: 0, dataFolder: join(folder, 'data'), git: { network: DEFAULT_NETWORK } },
    recorder: world.recorder('controller:deployment-status'),
    sources: {
      versionOf: async () => '',
      open: async () => ({ reports: async () => read(), close: async () => undefined }),
    },
  });
}

async function deployment(): Promise<TargetDeployment> {
  const { status } = await world.client.get(deliveryTargetKind, KEY);
  if (status?.deployment === undefined) throw new Error('no report');
  return status.deployment;
}

function engineReports(healthy: EngineReport['healthy'], path = EDGE): void {
  const report = { object: 'Kustomization edge', path, attempt: undefined, isWorking: false };
  read = () => ({ reports: [{ ...report, applied: head(), healthy }] });
}

function engineIsAway(): void {
  read = () => {
    throw new SluiceError('Unavailable', 'connection refused');
  };
}

async function deliverSettings(): Promise<void> {
  const revision = world.store.get(settings).revision + 1;
  settings = await publishNext(world, settings, `w${revision}`, `${revision}`);
  await deliver();
}

async function expectSettingsAsCause(): Promise<void> {
  engineReports(FAILED);
  await evaluate();
  const now = await deployment();
  const [web, other] = ['web', 'settings'].map((name) => deploymentOf(now, { repository: 'apps', package: name }));
  expect(web).toMatchObject({ healthy: { status: 'False' }, isShared: true, wasHealthy: true });
  expect(other).toMatchObject({ healthy: { status: 'False' }, isShared: true });
  expect(other).not.toHaveProperty('wasHealthy');
  expect(other).not.toHaveProperty('healthyTree');
}

/** The packages that a target with automatic rollback goes back with. */
async function due(): Promise<readonly string[]> {
  const target = await world.client.get(deliveryTargetKind, KEY);
  const packages = (await listDelivered(world.client, target)).of(target);
  const spec = { ...target.spec, rollback: { unhealthyAfter: '1s' } };
  const { observations } = decideRollbacks({ ...target, spec }, packages, new Map(), {
    monotonicMs: 0,
    highestOf: (one) => packages.find((other) => other.package === one.package)?.revision,
  });
  return [...observations.keys()];
}

test('deliveries while the engine cannot be read, does not have the object, or has none that deploys the folders', async () => {
  for (const next of [
    engineIsAway,
    () => (read = () => ({ reports: [], absent: 'Kustomization edge does not exist' })),
    () => (read = () => ({ reports: [] })),
  ]) {
    next();
    await deliverSettings();
    await evaluate();
    restart();
  }
  // The packages with an earlier content and those without need no states of their own meanwhile.
  expect((await deployment()).packages?.length ?? 0).toBeLessThanOrEqual(1);
  await expectSettingsAsCause();
});

test('a rebase of the branch during an outage of the engine, after which the earlier commits are gone', async () => {
  engineIsAway();
  await deliverSettings();
  await evaluate();
  rebaseMain(site);
  restart();
  // The delivered commit is not there any more.
  engineReports(FAILED);
  await evaluate();
  expect((await deployment()).synced).toMatchObject({ status: 'Unknown', reason: 'UnknownCommit' });
  await deliver();
  await expectSettingsAsCause();
});

test('a squash of the branch leaves packages healthy, and a failure after it is not their own', async () => {
  squashMain(site);
  restart();
  engineReports(state('True', 'Healthy', ''));
  await evaluate();
  expect((await deployment()).healthy).toMatchObject({ status: 'Unknown', reason: 'UnknownCommit' });
  await deliver();
  await evaluate();
  expect(await deployment()).toMatchObject({ commit: head(), healthy: { status: 'True' } });
  await deliverSettings();
  await expectSettingsAsCause();
});

test('a squash during an outage loses the content that was healthy: no package of the shared object goes back', async () => {
  engineIsAway();
  await deliverSettings();
  await evaluate();
  squashMain(site);
  await deliver();
  await evaluate();
  engineReports(FAILED);
  await evaluate();
  const web = deploymentOf(await deployment(), { repository: 'apps', package: 'web' });
  expect(web).toMatchObject({ healthy: { status: 'False' }, isShared: true, healthyTree: expect.any(String) });
  expect(web).not.toHaveProperty('wasHealthy');
  expect(await due()).toEqual([]);
  // Once it was healthy again, the next failure has its cause.
  engineReports(state('True', 'Healthy', ''));
  await evaluate();
  await deliverSettings();
  await expectSettingsAsCause();
  expect(await due()).toEqual(['apps/settings']);
});

test('manifests of another writer or of another target, which the same object deploys, fail: only changed packages go back', async () => {
  await world.client.patch(deliveryTargetKind, KEY, {
    spec: { selector: { packages: ['settings'] } },
  } as never);
  for (const [path, file] of [
    [EDGE, `${EDGE}/extra/cm.yaml`],
    ['clusters', 'clusters/west/web/cm.yaml'],
  ] as const) {
    engineReports(state('True', 'Healthy', ''), path);
    await deliver();
    await evaluate();
    await world.push(site, { [file]: configMap('extra') });
    await deliver();
    engineReports(FAILED, path);
    await evaluate();
    expect(await due()).toEqual([]);
    await deliverSettings();
    engineReports(FAILED, path);
    await evaluate();
    expect(await due()).toEqual(['apps/settings']);
  }
  // An object for the package alone is about nothing else.
  engineReports(state('True', 'Healthy', ''), `${EDGE}/settings`);
  await evaluate();
  engineReports(FAILED, `${EDGE}/settings`);
  await evaluate();
  expect(await due()).toEqual(['apps/settings']);
});

test('a status of an earlier version, which names no tree', async () => {
  engineReports(FAILED);
  const target = await world.client.get(deliveryTargetKind, KEY);
  const { common } = await deployment();
  const { healthyTree, ...earlier } = common;
  expect(healthyTree).toBe(gitCli(site, ['rev-parse', `main:${EDGE}`]));
  const status = { ...target.status, deployment: { ...(await deployment()), common: earlier } };
  await world.client.updateStatus(deliveryTargetKind, { ...target, status });
  engineIsAway();
  await deliverSettings();
  await evaluate();
  await expectSettingsAsCause();
});

test('a folder that the delivered commit does not have for a while', () => {
  const web = { repository: 'apps', package: 'web', revision: 1, commit: '', tree: '' };
  const report = { object: 'Kustomization edge', path: EDGE, attempt: undefined, isWorking: false };
  let before: TargetDeployment | undefined;
  const evaluated: EvaluatedPackage[] = [];
  for (const [commit, folderTree, healthy] of [
    ['c1', 'x', state('True', 'Healthy', '')],
    ['c2', 'absent', FAILED],
    ['c3', 'x', FAILED],
    ['c4', 'y', FAILED],
  ] as const) {
    const trees: Record<string, string> = {
      c1: 'x',
      'directory of c1': 'x',
      'directory of c3': 'x',
      [commit]: folderTree,
    };
    const packages = evaluatePackages(
      [{ delivered: web, folder: `${EDGE}/web`, reports: [{ ...report, applied: commit, healthy }] }],
      {
        ...{ lastCommit: commit, before, now: 0, confirmed: new Map(), includes: () => true, leftOut: () => undefined },
        treeAt: (at) => trees[at] ?? 'unknown',
      },
    );
    evaluated.push(...packages);
    before = targetDeployment(packages, {
      ...{
        delivered: state('True', 'Synced', ''),
        commit,
        tree: `directory of ${commit}`,
        objects: [],
        before,
        now: 0,
      },
    });
  }
  expect(evaluated.map(({ isUnchanged }) => isUnchanged)).toEqual([false, undefined, true, false]);
  expect(before?.common).not.toHaveProperty('wasHealthy');
});
