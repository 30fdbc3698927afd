import { expect, test } from 'vitest';
import type { KubeObject } from '../../support/api/kube-api.ts';
import { corpusMissing, corpusPackages } from '../../support/corpus.ts';
import { skipFor } from '../../support/skip.ts';
import { applyObjects } from '../support/apply-objects.ts';
import type { FollowOptions, PackageReport } from '../support/gitops/engine.ts';
import { definition, type Scenario } from '../support/gitops/scenario.ts';

/** Packages of which a cluster can have all objects: the others are rendered by functions that need containers, or have kinds of operators. */
const NAMES = [
  'basens',
  'cert-issuers',
  'echo',
  'external-secrets',
  'free5gc-operator',
  'ghost',
  'kindnet',
  'local-path-provisioner',
  'stock-repos',
  'vlanindex',
] as const;

interface CorpusOptions {
  /** Packages that this cluster cannot make healthy: they wait for an operator, a volume or a load balancer. */
  readonly waiting: readonly string[];
  readonly follow?: FollowOptions;
}

/** Packages that others wrote. */
export function corpusCase(of: () => Scenario, { waiting, follow = {} }: CorpusOptions): void {
  test('ten public packages are synced', skipFor(corpusMissing), async () => {
    const site = of();
    const kinds = [
      definition('cert-manager.io', 'ClusterIssuer', 'Cluster'),
      definition('vlan.resource.nephio.org', 'VLANIndex'),
    ];
    await applyObjects(
      site.world.cluster,
      kinds.map((text) => JSON.parse(text) as KubeObject),
    );
    const place = await site.target('corpus', NAMES, { spec: { allowSecrets: true }, follow });
    const packages = corpusPackages().filter(({ name }) => NAMES.some((each) => each === name));
    for (const { name, files } of packages) {
      const texts = [...files].map(([path, data]) => [path, data.toString()] as const);
      await site.world.author.publish(name, 'v1', Object.fromEntries(texts));
    }
    await site.world.delivered(
      place.name,
      NAMES.map((name) => `${name} v1`),
    );
    const head = site.world.headOf(place);
    for (const name of NAMES) {
      const holds = ({ synced, healthy }: PackageReport) => synced === head && (healthy || waiting.includes(name));
      await site.reported(place, name, 'synced', holds);
    }
    expect(packages).toHaveLength(NAMES.length);
  });
}
