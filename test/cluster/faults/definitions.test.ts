import { expect, test } from 'vitest';
import { expectPublished } from '../support/expect-published.ts';
import { created } from '../support/extension-server.ts';
import { DEFINITIONS, installDefinitions } from '../support/install-definitions.ts';
import { startLoad } from '../support/lifecycle-load.ts';
import { readRefs } from '../support/publications.ts';
import { useInstallation } from '../support/use-installation.ts';

const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const REPOSITORIES = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories';
const POLICIES = '/apis/sluice.dev/v1alpha1/packagepolicies';
const published: string[] = [];
const used = useInstallation();

/** Publishes packages, and expects that all packages are there. */
async function publish(prefix: string): Promise<void> {
  const load = startLoad(used.current, prefix);
  await load.progress(10);
  published.push(...(await load.stop()));
  await expectPublished(used.current, published);
}

/** Deletes a definition with its objects, and creates it again. */
async function defineAgain(name: string, path: string, meanwhile: () => Promise<unknown>): Promise<void> {
  const { admin } = used.current;
  expect((await admin.delete(`${DEFINITIONS}/${name}`)).status).toBe(200);
  await expect.poll(async () => (await admin.get(path)).status).toBe(404);
  await meanwhile();
  await installDefinitions(used.plane.kubeconfig);
  await expect.poll(async () => (await admin.get(path)).status).toBe(200);
}

test('the definition of repositories is deleted and created again: Git and the packages are the same', async () => {
  const { current } = used;
  const { replicas } = current;
  await current.register('default');
  await publish('before');
  const shown = async () => {
    const { body } = await current.admin.list(REVISIONS);
    return (body.items ?? [])
      .map(({ metadata: { name, uid }, spec }) => [name, uid, (spec as { lifecycle: string }).lifecycle])
      .sort();
  };
  const before = await shown();
  const refs = await readRefs(current.gitFolder, 'refs');
  const { apiVersion, kind, spec } = (await current.admin.get(`${REPOSITORIES}/packages`)).body;
  const missing = /does not serve [^:]*repositories\.config\.porch\.kpt\.dev/;
  await defineAgain('repositories.config.porch.kpt.dev', REPOSITORIES, async () => {
    await Promise.all(replicas.map((replica) => replica.logged(missing)));
    expect(await current.whenReady()).toBeDefined();
  });
  // Without its Repository it is not registered.
  await expect.poll(shown, { timeout: 90_000 }).toEqual([]);
  await created(current.admin.post(REPOSITORIES, { apiVersion, kind, metadata: { name: 'packages' }, spec }));
  await expect.poll(shown, { timeout: 90_000 }).toEqual(before);
  expect(await readRefs(current.gitFolder, 'refs')).toEqual(refs);
  await publish('after');
  expect(current.replicas).toEqual(replicas);
});

test('the definition of package policies is deleted and created again while clients publish', async () => {
  const { current } = used;
  const { replicas } = current;
  const load = startLoad(current, 'policies');
  await load.progress(5);
  await defineAgain('packagepolicies.sluice.dev', POLICIES, () =>
    // Nothing is published by policies that cannot be read.
    expect.poll(() => load.client.failures.size).toBeGreaterThan(0),
  );
  await load.progress(10);
  published.push(...(await load.stop()));
  console.log(`definitions: retried ${JSON.stringify([...load.client.failures])}`);
  await expectPublished(current, published);
  expect(current.replicas).toEqual(replicas);
});
