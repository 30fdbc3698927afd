import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ControllerOptions } from '../../../src/controller/controller.ts';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { CONTEXT, controllerOn, publish, publishNext, statusOf } from '../../../test/support/delivery.ts';
import { commitFile, headOf, hostRepository } from '../../../test/support/delivery-pull-request.ts';
import { type Fixture, fixture } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { MemoryForge } from '../../pull-request/testing-forge.ts';

const BRANCH = 'sluice/delivery/edge';
const FORGE = {
  ...{ provider: 'gitea' as const, api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } },
};

describe('a pull request of a delivery that the host closes for an earlier branch of the same name', () => {
  let world: Fixture;
  let site: string;
  let forge: MemoryForge;
  let controller: ControllerOptions;
  let web: string;
  const start = () => {
    controller = controllerOn(world, { openForge: () => forge });
  };
  beforeEach(async () => {
    world = await fixture();
    await world.register('apps');
    site = await world.bare('site');
    forge = new MemoryForge();
    hostRepository(forge, site);
    start();
    // The first delivery is merged, and its branch removed; the second one waits for users.
    web = await publish(world, 'web');
    const pullRequest = { forge: FORGE, merge: 'automatic' as const };
    const spec = { selector: {}, git: { repo: site, directory: 'clusters/edge' }, allowPrune: true, pullRequest };
    await world.client.create(deliveryTargetKind, { metadata: { name: 'edge' }, spec });
    await reconcile();
    expect(headOf(site, BRANCH)).toBeUndefined();
    await world.client.patch(deliveryTargetKind, { name: 'edge' }, { spec: { pullRequest: { merge: 'manual' } } });
    await publishNext(world, web, 'w2', '2');
    await reconcile();
    expect(states()).toEqual(['merged', 'open']);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const reconcile = () => controller.reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
  const states = () => forge.pulls.map(({ state }) => state);
  const close = (isByRemoval = true, by = 'sluice') => {
    const last = forge.pulls.length;
    forge.closings.set(last, { by, comment: undefined, ...(isByRemoval ? { isByRemoval } : {}) });
    forge.change(last, { state: 'closed', closedAt: '2030-01-01T00:00:00Z' });
  };
  const reason = async () => (await statusOf(world)).reason;

  test.each([false, true])('is opened again, with the reviews that it has (restart: %s)', async (isRestarted) => {
    const head = headOf(site, BRANCH);
    close();
    if (isRestarted) start();
    await reconcile();
    expect(states()).toEqual(['merged', 'open']);
    expect(headOf(site, BRANCH)).toBe(head);
    expect(await statusOf(world)).toMatchObject({
      reason: 'WaitsForMerge',
      status: { pullRequest: { number: 2, state: 'Open' } },
    });
    expect(await world.events('edge')).toContainEqual(
      expect.stringMatching(/^PullRequestReopened: .*\/2 is opened again: the host had closed it/),
    );
  });

  test('is opened again once for each head: another end of this kind stays, also for another process', async () => {
    close();
    await reconcile();
    await reconcile();
    close();
    for (const isRestarted of [false, true]) {
      if (isRestarted) start();
      await reconcile();
      expect(states()).toEqual(['merged', 'closed']);
      expect(await statusOf(world)).toMatchObject({
        ...{ reason: 'PullRequestClosed', message: expect.stringContaining('was closed by sluice') },
      });
    }
    // A user opens it again, and it gets another head.
    forge.change(2, { state: 'open' });
    await publishNext(world, web, 'w3', '3');
    await reconcile();
    close();
    await reconcile();
    expect(states()).toEqual(['merged', 'open']);
  });

  test.each(['Refused', 'InvalidInput', 'Conflict'] as const)(
    'another one is opened where the host refuses that (%s), also once',
    async (code) => {
      close();
      forge.before = (method) => {
        if (method === 'update' && states()[1] === 'closed' && forge.pulls.length === 2)
          throw new SluiceError(code, 'the pull request cannot be opened again');
      };
      await reconcile();
      expect(states()).toEqual(['merged', 'closed', 'open']);
      expect(await statusOf(world)).toMatchObject({
        reason: 'WaitsForMerge',
        status: { pullRequest: { number: 3, state: 'Open' } },
      });
      close();
      await reconcile();
      expect(states()).toEqual(['merged', 'closed', 'closed']);
      expect(await reason()).toBe('PullRequestClosed');
    },
  );

  test('is opened again when the host states a moment later what it closed it for', async () => {
    close(false);
    await reconcile();
    expect(await reason()).toBe('PullRequestClosed');
    forge.closings.set(2, { by: 'sluice', comment: undefined, isByRemoval: true });
    await reconcile();
    expect(states()).toEqual(['merged', 'open']);
  });

  test('what fails for now is tried again', async () => {
    close();
    forge.before = (method) => {
      if (method === 'update') throw new SluiceError('Unavailable', 'status 502');
    };
    await reconcile().catch(() => undefined);
    expect(states()).toEqual(['merged', 'closed']);
    forge.before = () => undefined;
    await reconcile();
    expect(states()).toEqual(['merged', 'open']);
  });

  test.each(['anna', 'sluice'])('stays closed where a user closed it, as %s', async (by) => {
    close(false, by);
    for (let round = 0; round < 4; round += 1) await reconcile();
    expect(states()).toEqual(['merged', 'closed']);
    expect(await reason()).toBe('PullRequestClosed');
    expect(forge.calls.filter((call) => call === 'closing')).toHaveLength(2);
  });

  test('stays closed after a user has closed what Sluice had opened again', async () => {
    close();
    await reconcile();
    close(false, 'anna');
    await reconcile();
    expect(states()).toEqual(['merged', 'closed']);
    expect((await statusOf(world)).message).toContain('was closed by anna');
  });

  test('stays closed while its branch is gone, or has what a user pushed', async () => {
    const head = headOf(site, BRANCH) ?? '';
    close();
    git(site, ['update-ref', '-d', `refs/heads/${BRANCH}`]);
    await reconcile();
    expect(await reason()).toBe('PullRequestClosed');
    git(site, ['update-ref', `refs/heads/${BRANCH}`, head]);
    commitFile(site, BRANCH, 'clusters/edge/web/cm.yaml', 'changed by a user');
    await reconcile();
    expect(await reason()).toBe('PullRequestClosed');
    expect(states()).toEqual(['merged', 'closed']);
    // As the page of the host requires it of who opens it again.
    git(site, ['update-ref', `refs/heads/${BRANCH}`, head]);
    await reconcile();
    expect(states()).toEqual(['merged', 'open']);
  });
});
