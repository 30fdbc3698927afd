import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadAll } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { allocateAll } from '../../allocation/allocate.ts';
import { deriveTable } from '../../allocation/allocation-table.ts';
import { claimFromObject } from '../../allocation/claim.ts';
import { poolFromPrefix, poolsFromInstance } from '../../allocation/pool.ts';
import { readManifests } from '../../resource/client/manifests.ts';
import { OBJECT_KINDS, PACKAGE_KINDS } from '../../resource/kinds/index.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { manifestsOf } from './manifests.ts';

const root = fileURLToPath(new URL('../../../examples/quickstart', import.meta.url));

interface KubernetesObject {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: unknown;
}

function objects(path: string): KubernetesObject[] {
  return loadAll(readFileSync(join(root, path), 'utf8')) as KubernetesObject[];
}

function files(name: string): Map<string, Uint8Array> {
  const folder = join(root, 'packages', name);
  return new Map(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file))]));
}

describe('the quick start', () => {
  test('its pools serve the claims of upf-edge', () => {
    const made = objects('2-network.yaml').flatMap((object) =>
      object.kind === 'IPPrefix' ? [poolFromPrefix(object)] : poolsFromInstance(object),
    );
    const pools = made.map((pool) => {
      if ('problem' in pool) throw new Error(pool.problem);
      return pool;
    });
    const claims = ['n3', 'n4', 'n6'].map((name) => {
      const claim = claimFromObject(objects(`packages/upf-edge/ipclaim-${name}.yaml`)[0], 'packages', 'upf-edge');
      if ('problem' in claim) throw new Error(claim.problem);
      return claim;
    });
    const { outcomes } = allocateAll(deriveTable(pools, [], { gracePeriod: 0 }), claims, 0);
    expect(outcomes.map(({ allocated, refused }) => [allocated?.prefix, allocated?.gateway, refused])).toEqual([
      ['10.3.1.2/24', '10.3.1.1', undefined],
      ['10.4.1.2/24', '10.4.1.1', undefined],
      ['10.6.1.2/24', '10.6.1.1', undefined],
    ]);
  });

  test.each([
    ['web-shop', ['configmap.yaml', 'deployment.yaml', 'namespace.yaml', 'service.yaml'], 4],
    ['upf-edge', ['configmap.yaml', 'deployment.yaml', 'ipclaim-n6.yaml', 'namespace.yaml'], 4],
    ['edge-monitoring', ['namespace.yaml', 'node-metrics.yaml'], 4],
  ])('%s can be delivered', (name, expected, count) => {
    const { manifests, refused } = manifestsOf(files(name));
    expect(refused).toBeUndefined();
    expect([...(manifests?.files.keys() ?? [])]).toEqual(expected);
    expect([manifests?.objects, manifests?.openSecrets]).toEqual([count, []]);
  });

  test('its configuration is valid, and its targets name packages that exist', () => {
    const names = readdirSync(root).filter((name) => /^[1-9]-.*\.yaml$/.test(name));
    const config = names.map((name) => ({ path: name, text: readFileSync(join(root, name), 'utf8') }));
    const read = readManifests(config, [...OBJECT_KINDS, ...PACKAGE_KINDS]);
    expect(read.map(({ kind }) => kind.kind)).toContain('PackagePolicy');
    const targets = read.filter(({ kind }) => kind.kind === 'DeliveryTarget');
    expect(targets).toHaveLength(2);
    const packages = readdirSync(join(root, 'packages'));
    for (const { object } of targets) {
      const { spec } = deliveryTargetKind.parse(object).object;
      expect(packages).toEqual(expect.arrayContaining([...(spec.selector.packages ?? ['none'])]));
    }
  });
});
