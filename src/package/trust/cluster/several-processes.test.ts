import { afterEach, expect, test } from 'vitest';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { configMapKind } from '../../../resource/kinds/core/config-map.ts';
import { MemoryStorage } from '../../../resource/storage/memory/memory-storage.ts';
import { EventLog } from '../../../resource/watch/event-log.ts';
import { announce, announcedIn, announcedScope } from '../ledger/announcements.ts';
import { raiseOf, scope } from '../ledger/trust-ledger.conformance.ts';
import { ClusterTrustLedger } from './cluster-trust-ledger.ts';
import type { LedgerObject } from './ledger-objects.ts';

const open: ClusterTrustLedger[] = [];
afterEach(() => {
  for (const ledger of open.splice(0)) ledger.close();
});

/** Two roles of one installation are two processes on one ledger. */
function cluster() {
  const clock = new ManualClock();
  const log = new EventLog({ clock });
  const objects = new MemoryStorage<LedgerObject>(configMapKind, { clock, log });
  const lead = async (epoch: number) => {
    const ledger = await ClusterTrustLedger.open({ objects, namespace: 'sluice', name: 'trust', epoch, clock });
    open.push(ledger);
    return ledger;
  };
  return { lead, writes: () => log.version };
}

test('statements that two processes announce at once stay announced, and then nothing is written any more', async () => {
  const { writes, lead } = cluster();
  const [first, second] = [await lead(1), await lead(2)];
  const announced = announcedScope(scope('x'));
  const say = (ledger: ClusterTrustLedger, digest: string) =>
    ledger.raise([{ scope: announced, ...announce(ledger.mark(announced), digest) }]);
  say(first, 'a'.repeat(64));
  say(second, 'b'.repeat(64));
  await Promise.all([first.flushed(), second.flushed()]);
  const settle = async () => {
    for (const ledger of [first, second]) await ledger.joinLatest([announced]);
    await Promise.all([first.flushed(), second.flushed()]);
  };
  for (let round = 0; round < 3; round += 1) await settle();
  for (const ledger of [first, second, await lead(3)])
    expect(announcedIn(ledger.mark(announced)).toSorted()).toEqual(['a'.repeat(64), 'b'.repeat(64)]);
  const before = writes();
  await settle();
  expect(writes()).toBe(before);
});

test('what another process has written about a scope is joined at once', async () => {
  const { lead } = cluster();
  const [first, second] = [await lead(1), await lead(2)];
  first.raise([raiseOf('x', 5)]);
  await first.flushed();
  expect(second.mark(scope('x'))).toBeUndefined();
  await second.joinLatest([scope('y')]);
  expect(second.mark(scope('x'))).toBeUndefined();
  await second.joinLatest([scope('x')]);
  expect(second.mark(scope('x'))?.sequence).toBe(5);
  // Many scopes are read by one list.
  first.raise([raiseOf('x', 6)]);
  await first.flushed();
  await second.joinLatest(Array.from({ length: 500 }, (_, number) => scope(`${number}`)));
  expect(second.mark(scope('x'))?.sequence).toBe(6);
});

test('a repository was shown if a process recorded a state of it, or a statement', async () => {
  const { lead } = cluster();
  const first = await lead(1);
  for (const id of ['a', 'b', 'c']) first.putRepository({ id, address: `https://host/${id}.git`, mainHeads: {} });
  first.advanceShown('a', 'refs');
  first.raise([{ ...raiseOf('x', 1), scope: { ...scope('x'), repository: 'b' }, digest: 'd'.repeat(64) }]);
  await first.flushed();
  const next = await lead(2);
  const shown = ['a', 'b', 'c', 'other'].map((id) => next.wasShownAt(`https://host/${id}.git`));
  expect(shown).toEqual([true, true, false, false]);
});
