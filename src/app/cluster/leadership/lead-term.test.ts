import { beforeEach, expect, test } from 'vitest';
import { LeaderElector } from '../../../controller/leader-election/leader-elector.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { RegistryClient } from '../../../resource/client/registry-client.ts';
import { leaseKind } from '../../../resource/kinds/coordination/lease.ts';
import { MemoryStorage } from '../../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../../resource/storage/registry.ts';
import { EventLog } from '../../../resource/watch/event-log.ts';
import { leadTerm } from './lead-term.ts';

const KEY = { namespace: 'sluice-system', name: 'sluice' };

/** A client whose updates fail while a test says so. */
class FaultyClient extends RegistryClient {
  isDown = false;

  override async update(...args: Parameters<RegistryClient['update']>): Promise<never> {
    if (this.isDown) throw new SluiceError('Unavailable', 'connect ECONNREFUSED 127.0.0.1:6443');
    return (await super.update(...args)) as never;
  }
}

let clock: ManualClock;
let client: FaultyClient;
let log: string[];
let stop: AbortController;

beforeEach(() => {
  clock = new ManualClock();
  const registry = new Registry();
  registry.register(new MemoryStorage(leaseKind, { clock, log: new EventLog({ clock }) }) as never);
  client = new FaultyClient(registry, { name: 'sluice' }, 'controller');
  log = [];
  stop = new AbortController();
});

/** A replica that leads with this work, and leads only once. */
function lead(work: (term: AbortSignal) => Promise<void> = untilAborted): Promise<string> {
  let recentError: unknown;
  const elector: LeaderElector = new LeaderElector({
    ...{ client, clock, ...KEY, identity: 'a', random: () => 0, monotonicNow: () => clock.now() },
    onStartedLeading: (term) => {
      const calls = {
        work,
        holder: () => elector.leaderIdentity,
        recentError: () => recentError,
        onEnd: () => log.push('end'),
        onFailed: () => log.push('failed'),
        onLost: () => {
          log.push('exit');
          stop.abort();
        },
        warn: (_: string, message: string) => log.push(message),
      };
      return leadTerm({ ...calls, lease: `${KEY.namespace}/${KEY.name}`, identity: 'a' }, term, stop.signal);
    },
    onError: (error) => {
      recentError = error;
    },
  });
  return elector.run(stop.signal).then(
    () => 'ended',
    (error: unknown) => String(error),
  );
}

function untilAborted(term: AbortSignal): Promise<void> {
  return new Promise((resolve) => term.addEventListener('abort', () => resolve()));
}

async function holder(): Promise<string | null | undefined> {
  return (await client.get(leaseKind, KEY)).spec.holderIdentity;
}

test('failed work is reported with its cause, not as a lost Lease, and releases the Lease', async () => {
  const run = lead(async () => {
    throw new SluiceError('Refused', 'configmaps "sluice-resource-versions" is forbidden');
  });
  await clock.advanceAsync(1000);
  expect(await run).toContain('is forbidden');
  expect(log).toEqual([
    'cannot lead: configmaps "sluice-resource-versions" is forbidden; the process releases Lease sluice-system/sluice and ends',
    'failed',
    'end',
  ]);
  expect(await holder()).toBe('');
});

test('a Lease that cannot be renewed is lost with the last error', async () => {
  void lead();
  await clock.advanceAsync(1000);
  client.isDown = true;
  await clock.advanceAsync(20_000);
  expect(log).toEqual([
    'end',
    'lost Lease sluice-system/sluice: it could not be renewed in time: cannot renew Lease sluice-system/sluice: connect ECONNREFUSED 127.0.0.1:6443; the process ends',
    'exit',
  ]);
});

test('a Lease that was deleted, or that another replica holds, is lost for that cause', async () => {
  void lead();
  await clock.advanceAsync(1000);
  await client.delete(leaseKind, KEY);
  await clock.advanceAsync(0);
  expect(log[1]).toBe(
    'lost Lease sluice-system/sluice: it was deleted or released by another program; the process ends',
  );

  log = [];
  stop = new AbortController();
  void lead();
  await clock.advanceAsync(1000);
  await client.patch(leaseKind, KEY, { spec: { holderIdentity: 'b' } });
  await clock.advanceAsync(0);
  expect(log[1]).toBe('lost Lease sluice-system/sluice: b holds it now; the process ends');
});

test('a process that stops reports nothing, also if its work then fails', async () => {
  const run = lead(async (term) => {
    await untilAborted(term);
    throw new Error('aborted');
  });
  await clock.advanceAsync(1000);
  stop.abort();
  await clock.advanceAsync(1000);
  expect(await run).toBe('ended');
  expect(log).toEqual(['end']);
});
