import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { deploymentSources } from '../../src/app/controllers/deployment-sources.ts';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { gitRepositoryKind, kustomizationKind } from '../../src/delivery/status/sources/engine-kinds.ts';
import { deploymentOf } from '../../src/delivery/status/target-deployment.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { MemoryStorage } from '../../src/resource/storage/memory/memory-storage.ts';
import { Registry } from '../../src/resource/storage/registry.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';
import { CONTEXT, controllerOn, publish } from '../../test/support/delivery.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';
import { deploymentStatusController } from './deployment-controller.ts';

/*
 * Flux applies the head of the branch with success, and one Kustomization deploys web and db. What the artifact lacks is not deployed by
 * that, whatever the commit contains.
 */

const KEY = { namespace: 'default', name: 'edge' };
const SOURCE = { namespace: 'flux-system', name: 'site' };

let world: Fixture;
let site: string;
let cluster: RegistryClient;
let readBack: ControllerOptions;
let stop: () => void;

beforeEach(async () => {
  const clock = new ManualClock();
  world = await fixture(clock);
  await world.register('apps');
  site = await world.bare('site');
  const registry = new Registry();
  for (const kind of [kustomizationKind, gitRepositoryKind])
    registry.register(new MemoryStorage(kind, { clock, log: new EventLog({ clock }) }));
  cluster = new RegistryClient(registry, { name: 'flux' }, 'controller');
  await cluster.create(gitRepositoryKind, sourceWith({}));
  const { client, store, folder } = world;
  readBack = deploymentStatusController({
    ...{ client, store, clock, window: 0, dataFolder: join(folder, 'data'), git: { network: DEFAULT_NETWORK } },
    recorder: world.recorder('controller:deployment-status'),
    sources: deploymentSources({ client, clock, network: DEFAULT_NETWORK, cluster }),
  });
  const unused = () => {
    throw new Error('not used here');
  };
  const ends = (readBack.sources ?? [])
    .slice(2)
    .map((source) =>
      source.start({ enqueue() {}, informer: unused, release: unused, prioritize: unused, track: unused }),
    );
  stop = () => {
    for (const end of ends) end();
  };
  await publish(world, 'web');
  await publish(world, 'db');
  await client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo: site, directory: 'clusters/edge' }, engine: { type: 'Flux' } } as never,
  });
});
afterEach(async () => {
  stop();
  await world[Symbol.asyncDispose]();
});

function sourceWith(spec: object): never {
  return { metadata: SOURCE, spec: { url: site, ref: { branch: 'main' }, ...spec } } as never;
}

/** Sluice delivers, and Flux applies the head of the branch. */
async function apply(): Promise<void> {
  await controllerOn(world).reconcile(KEY, CONTEXT);
  const revision = `main@sha1:${gitCli(site, ['rev-parse', 'main'])}`;
  const key = { namespace: 'flux-system', name: 'edge' };
  const present = await cluster.find(kustomizationKind, key);
  const object = {
    metadata: { ...key, ...present?.metadata },
    spec: { path: './clusters/edge', wait: true, sourceRef: { kind: 'GitRepository', name: 'site' } },
    status: {
      observedGeneration: present?.metadata.generation ?? 1,
      ...{ lastAppliedRevision: revision, lastAttemptedRevision: revision },
      conditions: [{ type: 'Ready', status: 'True', reason: 'ReconciliationSucceeded', message: 'Applied' }],
    },
  };
  if (present === undefined) await cluster.create(kustomizationKind, object as never);
  else await cluster.update(kustomizationKind, object as never);
}

/** Waits for the states of db and web, since the watch of the engine delivers a report a moment later. */
async function expectStates(...expected: readonly (string | RegExp)[]): Promise<void> {
  const read = async () => {
    await readBack.reconcile(KEY, CONTEXT);
    const deployment = (await world.client.get(deliveryTargetKind, KEY)).status?.deployment;
    return ['db', 'web'].map((name) => {
      const state = deployment && deploymentOf(deployment, { repository: 'apps', package: name });
      const { synced, healthy } = state ?? {};
      if (synced?.status === 'True' && healthy?.status === 'True') return 'healthy';
      return `${synced?.status} ${healthy?.status} ${healthy?.reason} ${synced?.message}`;
    });
  };
  await expect
    .poll(read, { interval: 10 })
    .toEqual(expected.map((one) => (typeof one === 'string' ? one : expect.stringMatching(one))));
}

test('a .sourceignore of another writer leaves a package out: it is neither synced nor healthy', async () => {
  await apply();
  await expectStates('healthy', 'healthy');
  for (const [file, text] of [
    ['.sourceignore', 'clusters/edge/web/\n'],
    ['clusters/.sourceignore', '/edge/web\n'],
    ['clusters/edge/.sourceignore', 'web\n'],
  ] as const) {
    await world.push(site, { [file]: text });
    await apply();
    const why = `Unknown Unknown NotReported .*pattern "${text.trim()}" of ${file} in the branch can match it; remove`;
    await expectStates('healthy', new RegExp(why));
    await world.push(site, { [file]: '# nothing\n*.md\n/docs\n' });
    await apply();
    await expectStates('healthy', 'healthy');
  }
  // Contents that are not read can have any pattern: that of a large file, and that of the file that a link names.
  await world.push(site, { '.sourceignore': `${'#'.repeat(70_000)}\n` });
  await apply();
  await expectStates(/NotReported/, /NotReported/);
  for (const [place, ...expected] of [
    ['clusters/west/', 'healthy', 'healthy'],
    ['clusters/edge/', /NotReported/, /NotReported/],
    ['clusters/west/', 'healthy', 'healthy'],
    ['', /NotReported/, /NotReported/],
  ] as const) {
    const commit = [
      'commit refs/heads/main',
      'committer Eve <eve@example.com> 1700000000 +0000',
      'data 0',
      'from refs/heads/main^0',
    ];
    const change = [
      'D .sourceignore',
      'D clusters/edge/.sourceignore',
      `M 120000 inline ${place}.sourceignore`,
      'data 5',
      '/docs',
      '',
    ];
    gitCli(site, ['fast-import', '--quiet'], [...commit, ...change].join('\n'));
    await apply();
    await expectStates(...expected);
  }
});

test('spec.ignore and spec.sparseCheckout of the GitRepository leave packages out', async () => {
  await apply();
  await expectStates('healthy', 'healthy');
  for (const [spec, why] of [
    [{ ignore: '/clusters/edge/web' }, /^Unknown Unknown NotReported .*spec\.ignore of its GitRepository/],
    [{ ignore: `${'#'.repeat(2000)}\n` }, undefined],
    [{ sparseCheckout: ['clusters/edge/db'] }, /^Unknown Unknown NotReported .*spec\.sparseCheckout/],
  ] as const) {
    const present = await cluster.get(gitRepositoryKind, SOURCE);
    await cluster.update(gitRepositoryKind, {
      ...present,
      ...(sourceWith(spec) as object),
      metadata: present.metadata,
    });
    if (why === undefined) await expectStates(/NotReported/, /NotReported/);
    else await expectStates('healthy', why);
  }
  // What "target init" prints, where Flux reads no file outside the directory.
  const present = await cluster.get(gitRepositoryKind, SOURCE);
  const spec = (sourceWith({ ignore: '# nothing', sparseCheckout: ['clusters/edge'] }) as { spec: object }).spec;
  await cluster.update(gitRepositoryKind, { ...present, spec });
  await world.push(site, { '.sourceignore': '*\n' });
  await apply();
  await expectStates('healthy', 'healthy');
});
