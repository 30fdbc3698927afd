import { expect, test } from 'vitest';
import type { DesiredRevision } from '../../../src/delivery/tree/desired-result.ts';
import { TargetObjects } from './target-objects.ts';

const TARGET = { metadata: { name: 'edge', namespace: 'default' } };

/** Packages that all ship one object. */
function chosen(...packages: readonly string[]): ReadonlyMap<string, DesiredRevision> {
  return new Map(
    packages.map((name) => {
      const places = new Map([['v1/Namespace//shared', 'ns.yaml']]);
      const revision = { repository: 'packages', package: name, sourceTree: name, built: { manifests: { places } } };
      return [name, revision as unknown as DesiredRevision];
    }),
  );
}

test('which packages ship an object does not depend on the order of deliveries', async () => {
  const [running, restarted] = [new TargetObjects(), new TargetObjects()];
  await running.set(TARGET, chosen('b'));
  await running.set(TARGET, chosen('a', 'b', 'c'));
  await restarted.set(TARGET, chosen('c', 'b', 'a'));
  const shippers = (objects: TargetObjects) => objects.packagesOf(TARGET, 'v1/Namespace//shared');
  expect(shippers(running)).toHaveLength(3);
  expect(shippers(restarted)).toEqual(shippers(running));
});
