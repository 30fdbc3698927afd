import { afterAll, beforeAll, expect, test } from 'vitest';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { CONTEXT, controllerOn, publish, publishNext, statusOf } from '../../../test/support/delivery.ts';
import { fixture } from '../../../test/support/fixture.ts';
import { type GitHubHost, openGitHub } from '../../../test/support/github/github-host.ts';
import { GitHubServer } from '../../../test/support/github/github-server.ts';

const NAMES = ['edge', 'core', 'access'];

const server = new GitHubServer();
beforeAll(() => server.listen());
afterAll(() => server.close());

/** Targets with directories of one repository. `opened` has whether each opening of it may merge. */
async function targetsOn(host: GitHubHost, merge: 'automatic' | 'manual') {
  const world = await fixture();
  await world.register('apps');
  const opened: boolean[] = [];
  let closed = 0;
  const controller = controllerOn(world, {
    openForge: ({ spec }) => {
      opened.push(spec.pullRequest?.merge === 'automatic');
      const forge = host.connectWith({});
      const close = forge.close.bind(forge);
      forge.close = () => {
        closed += 1;
        return close();
      };
      return forge;
    },
  });
  const forge = { provider: 'github' as const, api: server.api, secretRef: { name: 'github' } };
  for (const name of NAMES)
    await world.client.create(deliveryTargetKind, {
      metadata: { name },
      spec: {
        selector: {},
        git: { repo: host.repository.gitDir, directory: `clusters/${name}` },
        pullRequest: { forge, merge },
      },
    });
  const reconcile = () =>
    Promise.all(NAMES.map((name) => controller.reconcile({ namespace: 'default', name }, CONTEXT)));
  return { world, reconcile, opened, closed: () => closed };
}

test('targets of one repository share what is opened, with one token of the App', async () => {
  const host = await openGitHub(server, 'app');
  const { world, reconcile, opened } = await targetsOn(host, 'automatic');
  // Nothing is merged before the check of the pull request.
  await host.protect('main', { check: 'deploy' });
  const web = await publish(world, 'web');
  const tokens = () =>
    server.requests.filter(({ method, url }) => `${method} ${url}`.match(/^POST .*\/access_tokens$/));
  await reconcile();
  expect(host.repository.pulls).toHaveLength(3);
  expect(tokens()).toHaveLength(1);
  await publishNext(world, web, 'w2', '2');
  await reconcile();
  expect(tokens()).toHaveLength(1);
  expect(opened).toEqual([true]);
  for (const name of NAMES) expect(await statusOf(world, name)).toMatchObject({ reason: 'WaitsForMerge' });
  await world[Symbol.asyncDispose]();
  await host.close();
});

test('the repository is closed with its last target, and opened again for other rights', async () => {
  const host = await openGitHub(server, 'app');
  const { world, reconcile, opened, closed } = await targetsOn(host, 'manual');
  await publish(world, 'web');
  await reconcile();
  expect(opened).toEqual([false]);
  const [first = '', ...others] = NAMES;
  const target = await world.client.get(deliveryTargetKind, { name: first });
  const { pullRequest } = target.spec;
  if (pullRequest === undefined) throw new Error('the target has none');
  await host.protect('main', { check: 'deploy' });
  await world.client.update(deliveryTargetKind, {
    ...target,
    spec: { ...target.spec, pullRequest: { ...pullRequest, merge: 'automatic' } },
  });
  await reconcile();
  expect(opened).toEqual([false, true]);
  expect(closed()).toBe(0);
  for (const [index, name] of others.entries()) {
    await world.client.delete(deliveryTargetKind, { name });
    await reconcile();
    expect(closed()).toBe(index);
  }
  await world[Symbol.asyncDispose]();
  await host.close();
});
