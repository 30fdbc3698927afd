import { expect, test } from 'vitest';
import { corpusMissing, corpusPackages } from '../../support/corpus.ts';
import { skipFor } from '../../support/skip.ts';
import type { Scenario } from '../support/gitops/scenario.ts';

/** Packages of which a plain cluster, or one with Sluice's kinds, can have all objects; the others need operators. */
const NAMES = [
  'basens',
  'cert-issuers',
  'echo',
  'external-secrets',
  'free5gc-operator',
  'ghost',
  'kindnet',
  'local-path-provisioner',
  'pkg-example-upf-bp',
  'stock-repos',
] as const;

/** Packages that others wrote. */
export function corpusCase(of: () => Scenario, { unhealthy }: { readonly unhealthy: readonly string[] }): void {
  test('ten public packages are synced', skipFor(corpusMissing), async () => {
    const site = of();
    const place = await site.target('corpus', NAMES, { spec: { allowSecrets: true } });
    const all = corpusPackages();
    for (const name of NAMES) {
      const pack = all.find((each) => each.name === name);
      const files = [...(pack?.files ?? [])].map(([path, data]) => [path, data.toString()] as const);
      await site.world.author.publish(name, 'v1', Object.fromEntries(files));
    }
    await site.world.delivered(
      place.name,
      NAMES.map((name) => `${name} v1`),
    );
    const head = site.world.headOf(place);
    for (const name of NAMES) {
      const holds = unhealthy.includes(name) ? undefined : true;
      const report = await site.reported(
        place,
        name,
        'synced',
        ({ synced, healthy }) => synced === head && (holds === undefined || healthy),
      );
      expect(report.synced).toBe(head);
    }
  });
}
