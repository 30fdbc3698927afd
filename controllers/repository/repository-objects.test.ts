import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { repositoryControllerOf } from '../../test/support/repository-controller.ts';
import { RepositoryObjects } from './repository-objects.ts';

const CONTEXT = { signal: new AbortController().signal, failures: 0 };

describe('objects of repositories', () => {
  let clock: ManualClock;
  let world: Fixture;
  let controller: ControllerOptions;
  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    controller = repositoryControllerOf(world);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const reconcile = () => controller.reconcile({ namespace: 'default', name: 'apps' }, CONTEXT);
  const read = () => world.client.get(repositoryKind, { name: 'apps' });
  const version = async () => (await read()).metadata.resourceVersion;
  const lastSync = async () => (await read()).status?.lastFullSyncTime;
  const register = async () =>
    world.client.create(repositoryKind, {
      metadata: { name: 'apps' },
      spec: { git: { repo: await world.bare('apps') } },
    });

  test('changes of times alone are written every five minutes', async () => {
    await register();
    await reconcile();
    const first = await version();
    for (let look = 0; look < 5; look += 1) {
      clock.advance(59_000);
      await reconcile();
    }
    expect(await version()).toBe(first);
    clock.advance(5000);
    await reconcile();
    expect(await version()).not.toBe(first);
    expect(await lastSync()).toBe('2026-01-01T00:05:00Z');
  });

  test('a report is not lost when others write the status at the same time', async () => {
    await register();
    const { client } = world;
    let writes = 0;
    const raced = {
      find: client.find.bind(client),
      updateStatus: async (...args: Parameters<typeof client.updateStatus>) => {
        writes += 1;
        const current = await read();
        const mergePublication = [{ policy: `p${writes}`, uid: 'u', publishOn: 'merge' as const }];
        if (writes < 4)
          await client.updateStatus(repositoryKind, { ...current, status: { ...current.status, mergePublication } });
        return client.updateStatus(...args);
      },
    } as unknown as typeof client;
    const objects = new RepositoryObjects({ client: raced, clock });
    await objects.report({ namespace: 'default', name: 'apps' }, { reason: 'Ready', message: '' });
    const { status } = await read();
    expect(findCondition(status?.conditions, 'Ready')).toMatchObject({ status: 'True' });
    expect(status?.mergePublication).toEqual([{ policy: 'p3', uid: 'u', publishOn: 'merge' }]);
    await objects.report({ namespace: 'default', name: 'missing' }, { reason: 'Ready', message: '' });
  });

  test('with an informer it reads objects from there, and what the informer does not show yet is not lost', async () => {
    await register();
    let shown = await read();
    controller = repositoryControllerOf(world, { registered: () => [shown], find: () => shown });
    // The status that opening reports is not in the informer.
    await reconcile();
    expect(findCondition((await read()).status?.conditions, 'Ready')).toMatchObject({
      status: 'True',
      reason: 'Ready',
    });
    const client = world.client.as({ name: 'anna' }, 'api');
    const metadata = { annotations: { note: 'changed' } };
    await client.patch(repositoryKind, { name: 'apps' }, { metadata });
    clock.advance(600_000);
    await reconcile();
    expect(await lastSync()).toBe('2026-01-01T00:10:00Z');
    shown = await read();
    clock.advance(10_000);
    await reconcile();
    expect(await version()).toBe(shown.metadata.resourceVersion);
    await world.client.delete(repositoryKind, { name: 'apps' });
    await reconcile();
    expect(world.store.findRepository('default/apps')).toBeDefined();
  });
});
