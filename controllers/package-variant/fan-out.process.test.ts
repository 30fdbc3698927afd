import { expect, test } from 'vitest';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { fixture } from '../../test/support/fixture.ts';
import { startGitServer } from '../../test/support/git/git-server.ts';
import { DEPLOYMENT } from '../../test/support/variant-bench.ts';
import { packageVariantController } from './package-variant-controller.ts';

const EDGES = ['edge-0', 'edge-1'];
const PACKAGES = Array.from({ length: 20 }, (_, number) => `site-${number}`);
const TOTAL = EDGES.length * PACKAGES.length;
/** 20 drafts of a repository get into a few pushes: the first one, and those that were made while it was under way. */
const MAX_PUSHES = 4;
const credentials = { basic: { username: 'sluice', password: 'any' } };
const WAIT = { timeout: 30_000, interval: 20 };

test('the revision of a blueprint becomes 40 drafts in two repositories with a few pushes to each', async () => {
  await using world = await fixture();
  const { client, store, clock, registry, manager } = world;
  const server = await startGitServer({ root: world.folder });
  try {
    for (const name of ['blueprints', ...EDGES]) {
      await world.bare(name);
      await world.register(name, { repo: `${server.url}/${name}.git`, deployment: name !== 'blueprints', credentials });
    }
    const blueprint = await world.draft('blueprints/web/v1', { 'web.yaml': DEPLOYMENT });
    manager.addController(packageVariantController({ client, store, clock, kinds: registry }));
    await manager.start();
    for (const repo of EDGES)
      for (const name of PACKAGES)
        await client.create(packageVariantKind, {
          metadata: { name: `${repo}-${name}` },
          spec: { upstream: { repo: 'blueprints', package: 'web' }, downstream: { repo, package: name } },
        });
    const stalled = async () =>
      (await client.list(packageVariantKind)).items.filter(
        ({ status }) => findCondition(status?.conditions, 'Stalled')?.status === 'True',
      ).length;
    await expect.poll(stalled, WAIT).toBe(TOTAL);

    const from = server.requests.length;
    await world.publish(blueprint.name);
    const drafts = () => EDGES.flatMap((repository) => store.list({ repository }));
    await expect.poll(() => drafts().length, WAIT).toBe(TOTAL);
    const requests = server.requests.slice(from);
    for (const name of EDGES) {
      const own = requests.filter(({ url }) => url.startsWith(`/${name}.git/`));
      const pushes = own.filter(({ method, url }) => method === 'POST' && url.endsWith('/git-receive-pack')).length;
      expect(pushes).toBeGreaterThan(0);
      expect(pushes).toBeLessThanOrEqual(MAX_PUSHES);
      expect(own.filter(({ fetches }) => fetches === true).length).toBeLessThanOrEqual(1);
    }
    expect(drafts().every(({ lifecycle }) => lifecycle === 'Draft')).toBe(true);
  } finally {
    await manager.stop();
    await server.close();
  }
});
