import { readFileSync } from 'node:fs';
import { loadAll } from 'js-yaml';
import type { KubeObject } from '../../../support/api/kube-api.ts';
import type { DeliveredPlace } from './gitops-world.ts';

const PAGE = new URL('../../../../docs/delivery.md', import.meta.url);
/** Waits that are too long for a test. */
const SHORTER: Readonly<Record<string, string>> = {
  'maxDuration: 1m': 'maxDuration: 3s',
  'retryInterval: 30s': 'retryInterval: 2s',
  'timeout: 5m': 'timeout: 30s',
};

/**
 * The objects of some kinds that docs/delivery.md shows, for another place than its `edge-east`: what is documented is what is tested. Throws if
 * the page does not show one of them.
 */
export function documentedObjects(kinds: readonly string[], place: DeliveredPlace): Map<string, KubeObject> {
  const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = '']) => text);
  const objects = blocks.flatMap((text) => loadAll(placed(text, place)) as KubeObject[]);
  return new Map(
    kinds.map((kind) => {
      const found = objects.find((object) => object.kind === kind);
      if (found === undefined) throw new Error(`docs/delivery.md does not show a ${kind}`);
      return [kind, found];
    }),
  );
}

function placed(text: string, { name, url, directory }: DeliveredPlace): string {
  const inside = directory === '' ? '' : `${directory}/`;
  const moved = text
    .replaceAll('https://git.example.com/clusters/edge-east.git', url)
    .replaceAll('clusters/edge-east/', inside)
    .replaceAll('clusters/edge-east', directory)
    .replaceAll('edge-east', name);
  return Object.entries(SHORTER).reduce((shorter, [long, short]) => shorter.replaceAll(long, short), moved);
}
