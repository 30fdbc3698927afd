import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { type FreezeCount, observeFreezes } from './freeze-metrics.ts';

test('sluice_frozen is 1 for each freeze in force, and absent after it', async () => {
  const registry = new Registry();
  const freezes: FreezeCount[] = [
    { namespace: 'default', name: 'core', isInstallation: false },
    { namespace: 'sluice-system', name: 'year', isInstallation: true },
  ];
  observeFreezes(registry, () => freezes);
  const lines = async () => (await registry.metrics()).split('\n').filter((line) => line.startsWith('sluice_frozen'));
  expect(await lines()).toEqual([
    'sluice_frozen{namespace="default",name="core",scope="Namespace"} 1',
    'sluice_frozen{namespace="sluice-system",name="year",scope="Installation"} 1',
  ]);
  freezes.length = 0;
  expect(await lines()).toEqual([]);
});
