import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { corpus, corpusMissing } from '../../../test/support/corpus.ts';
import { skipFor } from '../../../test/support/skip.ts';
import { builtIns } from '../built-in/index.ts';
import { Catalog } from './catalog.ts';
import { parseImageName } from './image-name.ts';

/** Functions that only mean something for Nephio's own kinds: the parts of its own network packages. */
const NEPHIO = new Set([
  // Specialisers: they turn Nephio's interfaces, data networks and claims into configuration.
  ...['interface-fn', 'dnn-fn', 'nad-fn', 'nad-master-fn', 'nad-inject-fn', 'vlan-fn', 'ipam-fn', 'nephio-upf-ipam-fn'],
  // They make the resources of network functions.
  ...[
    'nfdeploy-fn',
    'nfdeployfn',
    'upf-deploy-fn',
    'amf-deploy-fn',
    'smf-deploy-fn',
    'ueransim-deploy-fn',
    'gen-configmap-fn',
    'apply-scale-profile',
  ],
]);

test('built-in functions cover at least 85 % of what real packages name', skipFor(corpusMissing), async () => {
  const catalog = new Catalog(builtIns);
  const lines = readFileSync(join(corpus, 'kptfiles/index.jsonl'), 'utf8').trim().split('\n');
  const images = lines.flatMap((line) => (JSON.parse(line) as { functions: string[] }).functions);
  const counted = images.filter((image) => !NEPHIO.has(parseImageName(image).name));
  const left = counted.filter((image) => catalog.resolve({ image }, []).type !== 'builtIn');
  const share = 1 - left.length / counted.length;
  const names = Map.groupBy(left, (image) => parseImageName(image).name);
  const missing = [...names].sort(([, a], [, b]) => b.length - a.length).map(([name, all]) => `${name} ${all.length}`);
  console.log(
    `built-in functions cover ${(share * 100).toFixed(1)} % of ${counted.length} references (${images.length - counted.length} of Nephio's left out); missing: ${missing.join(', ')}`,
  );
  expect(images.length).toBeGreaterThan(1400);
  expect(share).toBeGreaterThanOrEqual(0.85);
});
