import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadAll } from 'js-yaml';
import { expect, test } from 'vitest';
import type { KubeObject } from '../../support/api/kube-api.ts';
import { applyObjects } from '../support/apply-objects.ts';
import type { Files } from '../support/gitops/package-author.ts';
import type { Scenario } from '../support/gitops/scenario.ts';

const QUICK_START = fileURLToPath(new URL('../../../examples/quickstart/', import.meta.url));
const FILES = ['2-network', '3-policy', '4-targets'];
const SITES = {
  'edge-east': { 'edge-monitoring': 'node-metrics', 'upf-edge': 'upf', 'web-shop': 'storefront' },
  'edge-west': { 'edge-monitoring': 'node-metrics', 'web-shop': 'storefront' },
} as const;

/** The targets and packages of the quick start. */
export function quickStartCase(of: () => Scenario): void {
  test('the targets of the quick start become healthy, and the objects go with those of the engine', async () => {
    const site = of();
    const { world, engine } = site;
    const east = world.place('edge-east');
    const west = world.place('edge-west');
    const objects = FILES.flatMap((file) => {
      const text = readFileSync(join(QUICK_START, `${file}.yaml`), 'utf8');
      return loadAll(text.replaceAll('sluice:///', `${world.git.url}/`)) as KubeObject[];
    });
    const inDefault = (object: KubeObject) => ({ ...object, metadata: { ...object.metadata, namespace: 'default' } });
    await applyObjects(world.sluice.api, objects.map(inDefault));
    for (const name of ['edge-monitoring', 'upf-edge']) await world.author.draft(name, 'v1', filesOf(name));
    const shop = await world.author.draft('web-shop', 'v1', filesOf('web-shop'));
    await world.author.condition(shop, 'shop.example.com/CapacityReviewed');
    await world.author.approve(shop);
    await world.delivered(
      'edge-east',
      Object.keys(SITES['edge-east']).map((name) => `${name} v1`),
    );
    await world.delivered(
      'edge-west',
      Object.keys(SITES['edge-west']).map((name) => `${name} v1`),
    );

    // The second site is the same cluster after the first one was given up.
    for (const place of [east, west]) {
      await engine.follow(place);
      const packages = SITES[place.name as keyof typeof SITES];
      for (const name of Object.keys(packages)) await site.synced(place, name);
      const workloads = ['daemonsets', 'deployments'].map((kind) => site.world.cluster.list(`/apis/apps/v1/${kind}`));
      const names = (await Promise.all(workloads)).flatMap(({ body }) =>
        body.items.map(({ metadata }) => metadata.name),
      );
      expect(names).toEqual(expect.arrayContaining(Object.values(packages)));
      await engine.unfollow(place);
      for (const name of Object.keys(packages)) await site.gone(place, `/api/v1/namespaces/${name}`);
    }
  });
}

function filesOf(name: string): Files {
  const folder = join(QUICK_START, 'packages', name);
  const files = globSync('**/*', { cwd: folder, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(files.map((entry) => [entry.name, readFileSync(join(folder, entry.name), 'utf8')]));
}
