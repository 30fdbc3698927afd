import { expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { ClusterTrustLedger } from '../../package/trust/cluster/cluster-trust-ledger.ts';
import type { LedgerObject } from '../../package/trust/cluster/ledger-objects.ts';
import { headAmong } from '../../package/trust/ledger/main-heads.ts';
import { key, raiseOf, scope } from '../../package/trust/ledger/trust-ledger.conformance.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { revoke } from './key-revoke.ts';

test('in a cluster, what the leader has acknowledged before a key is revoked keeps its validity', async () => {
  const clock = new ManualClock();
  const objects = new MemoryStorage<LedgerObject>(configMapKind, { clock, log: new EventLog({ clock }) });
  const open = (epoch: number) =>
    ClusterTrustLedger.open({ objects, namespace: 'sluice', name: 'trust', epoch, clock });
  const leader = await open(1);
  leader.addKey(key('a'));
  leader.putRepository({ id: 'r', address: 'one', mainHeads: { main: 'c1' } });
  leader.raise([raiseOf('x', 1)]);
  await leader.flushed();
  const command = await open(0);
  // After the command has read the ledger.
  leader.raise([raiseOf('y', 2)]);
  leader.noteMain('r', 'main', 'c2');
  await leader.flushed();
  await revoke(command, 'SHA256:a', '2026-02-01T00:00:00Z');
  await command.flushed();
  for (const ledger of [leader, await open(2)]) {
    await ledger.refresh();
    const revocation = ledger.keys().find(({ fingerprint }) => fingerprint === 'SHA256:a')?.revocation;
    expect(headAmong(revocation?.heads ?? {}, 'r', 'main')).toBe('c2');
    expect(ledger.mark(scope('y'))?.order).toBeLessThanOrEqual(revocation?.order ?? -1);
  }
});
