import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { deploymentSources } from '../../src/app/controllers/deployment-sources.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { secretKind } from '../../src/resource/kinds/core/secret.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { CONTEXT, controllerOn, publish } from '../../test/support/delivery.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { deploymentStatusController } from './deployment-controller.ts';

const KEY = { namespace: 'default', name: 'edge' };
const FLUX = { type: 'Flux', name: 'edge', kubeconfigSecretRef: { name: 'kube', key: 'value' } };

let world: Fixture;
beforeEach(async () => {
  world = await fixture(new ManualClock());
  await world.register('apps');
});
afterEach(() => world[Symbol.asyncDispose]());

test.each<[string, object, string | undefined, string]>([
  [
    'no Secret',
    FLUX,
    undefined,
    'Secret default/kube, which spec.engine.kubeconfigSecretRef refers to, does not exist',
  ],
  ['no kubeconfig', FLUX, 'nonsense', 'the kubeconfig in Secret default/kube'],
  [
    'an address without commit statuses',
    { type: 'CommitStatus' },
    undefined,
    'needs spec.git.repo of the form https://',
  ],
])('%s makes the engine unreachable, with one Warning event', async (_, engine, kubeconfig, message) => {
  const { client, store, clock, folder } = world;
  if (kubeconfig !== undefined)
    await client.create(secretKind, { metadata: { name: 'kube' }, stringData: { value: kubeconfig } });
  await publish(world, 'web');
  const git = { repo: await world.bare('site') };
  await client.create(deliveryTargetKind, { metadata: { name: 'edge' }, spec: { selector: {}, git, engine } as never });
  await controllerOn(world).reconcile(KEY, CONTEXT);
  const controller = deploymentStatusController({
    ...{ client, store, clock, window: 0, dataFolder: join(folder, 'data'), git: { network: DEFAULT_NETWORK } },
    sources: deploymentSources({ client, clock, network: DEFAULT_NETWORK }),
    recorder: world.recorder('controller:deployment-status'),
  });
  for (let round = 0; round < 2; round += 1) await controller.reconcile(KEY, CONTEXT);
  const state = { status: 'Unknown', reason: 'Unreachable', message: expect.stringContaining(message) };
  const { status } = await client.get(deliveryTargetKind, KEY);
  expect(status?.deployment).toMatchObject({ synced: state, healthy: state });
  expect((await world.events('edge')).filter((event) => event.startsWith('Unreachable: '))).toHaveLength(1);
});
