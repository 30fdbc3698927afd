import { expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { namespaceKind } from '../../resource/kinds/core/namespace.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import type { PlannedWrite } from '../../server/handlers/handler.ts';
import { keepPackagesOfEndingNamespace } from './keep-packages-of-ending-namespace.ts';

test('packages are not deleted while their namespace is', async () => {
  const clock = new ManualClock();
  const registry = new Registry();
  registry.register(new MemoryStorage(namespaceKind, { clock, log: new EventLog({ clock }) }));
  const client = new RegistryClient(registry, { name: 'anna' }, 'api');
  for (const name of ['team', 'gone']) await client.create(namespaceKind, { metadata: { name }, spec: {} });
  await client.delete(namespaceKind, { name: 'gone' });
  const admit = keepPackagesOfEndingNamespace(client);
  const write = (namespace: string, operation: 'delete' | 'update' = 'delete') =>
    admit({
      kind: packageRevisionKind,
      operation,
      object: { metadata: { name: 'apps.a.w1', namespace } },
    } as PlannedWrite);
  await expect(write('gone')).rejects.toMatchObject({
    code: 'Conflict',
    message: expect.stringContaining('namespace gone is being deleted, and packages stay in Git'),
  });
  for (const allowed of [write('team'), write('gone', 'update'), write('unknown')])
    await expect(allowed).resolves.toBeUndefined();
});
