import { expect, test } from 'vitest';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { configMapKind } from '../../../resource/kinds/core/config-map.ts';
import { MemoryStorage } from '../../../resource/storage/memory/memory-storage.ts';
import { EventLog } from '../../../resource/watch/event-log.ts';
import { ClusterTrustLedger } from './cluster-trust-ledger.ts';
import type { LedgerObject } from './ledger-objects.ts';

function cluster() {
  const clock = new ManualClock();
  const objects = new MemoryStorage<LedgerObject>(configMapKind, { clock, log: new EventLog({ clock }) });
  const options = { objects, namespace: 'sluice', name: 'trust', clock };
  return {
    open: (epoch: number, readOnly = false) => ClusterTrustLedger.open({ ...options, epoch, readOnly }),
    stored: async () =>
      (await objects.list({ actor: { name: 'test' }, face: 'controller' }, { namespace: 'sluice' })).items,
  };
}

const at = { address: 'https://host/a.git', mainHeads: { main: 'c1' } };

test('a standby keeps the later id of an address when the next leader notes a head of the earlier one', async () => {
  const { open, stored } = cluster();
  const leader = await open(5);
  for (const id of ['earlier', 'later']) leader.putRepository({ id, ...at });
  await leader.flushed();
  const standby = await open(0, true);
  const next = await open(6);
  next.noteMain('earlier', 'main', 'c2');
  await next.flushed();
  standby.joinObjects(await stored());
  expect(standby.repository('earlier')?.mainHeads).toEqual({ main: 'c2' });
  for (const ledger of [standby, next, await open(7)]) expect(ledger.repositoryAt(at.address)?.id).toBe('later');
});
