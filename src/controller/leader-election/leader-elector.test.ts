import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { ManualClock, settle } from '../../foundation/time/manual-clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { leaseKind } from '../../resource/kinds/coordination/lease.ts';
import { eventKind } from '../../resource/kinds/core/event.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { EventRecorder } from '../event-recorder.ts';
import { LeaderElector } from './leader-elector.ts';
import type { LeaderElectorOptions } from './leader-elector-options.ts';
import type { Lease } from './lease-record.ts';

const KEY = { namespace: 'default', name: 'sluice' };

/** A storage that can fail, hang or lose the response of a write. */
class FaultyLeases extends MemoryStorage<Lease> {
  fault: 'none' | 'down' | 'hang' | 'lose' = 'none';

  override get(...args: Parameters<MemoryStorage<Lease>['get']>) {
    return this.#faulty(() => super.get(...args));
  }

  override create(...args: Parameters<MemoryStorage<Lease>['create']>) {
    return this.#faulty(() => super.create(...args));
  }

  override update(...args: Parameters<MemoryStorage<Lease>['update']>) {
    return this.#faulty(() => super.update(...args));
  }

  async #faulty<Result>(call: () => Promise<Result>): Promise<Result> {
    if (this.fault === 'hang') await new Promise(() => undefined);
    if (this.fault === 'down') throw new SluiceError('Unavailable', 'injected');
    const result = await call();
    if (this.fault === 'lose') throw new SluiceError('Unavailable', 'the response was lost');
    return result;
  }
}

let clock: ManualClock;
let leases: FaultyLeases;
let client: RegistryClient;
let log: string[];
let ends: AbortController[];

beforeEach(() => {
  clock = new ManualClock();
  const events = new EventLog({ clock });
  leases = new FaultyLeases(leaseKind, { clock, log: events });
  const registry = new Registry();
  registry.register(leases);
  registry.register(new MemoryStorage(eventKind, { clock, log: events }));
  client = new RegistryClient(registry, { name: 'test' }, 'controller');
  log = [];
  ends = [];
});
afterEach(async () => {
  leases.fault = 'none';
  for (const end of ends) end.abort();
  // Work that does not end delays this until the renew deadline.
  await clock.advanceAsync(20_000);
});

function start(identity: string, options: Partial<LeaderElectorOptions> = {}) {
  const end = new AbortController();
  const elector = new LeaderElector({
    ...{ client, clock, ...KEY, identity, random: () => 0, monotonicNow: () => clock.now() },
    onStartedLeading: async (signal) => {
      log.push(`${identity} works`);
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      log.push(`${identity} ends, ${elector.isLeader() ? 'leads' : 'lost'}`);
    },
    onStoppedLeading: () => log.push(`${identity} stopped`),
    ...options,
  });
  const run = elector.run(end.signal);
  run.catch(() => undefined);
  const stop = async () => {
    end.abort();
    await clock.advanceAsync(0);
    await run;
  };
  ends.push(end);
  return { elector, run, stop, end };
}

test('one of two leads; after its stop, the other one at once', async () => {
  const first = start('first');
  await settle();
  const second = start('second', { onNewLeader: (leader) => log.push(`second sees ${leader}`) });
  await clock.advanceAsync(60_000);
  expect([first.elector.isLeader(), second.elector.isLeader()]).toEqual([true, false]);
  expect(second.elector.leaderIdentity).toBe('first');
  await first.stop();
  await clock.advanceAsync(0);
  expect([first.elector.isLeader(), second.elector.isLeader()]).toEqual([false, true]);
  expect(log).toEqual([
    'first works',
    'second sees first',
    'first ends, leads',
    'first stopped',
    'second sees undefined',
    'second works',
    'second sees second',
  ]);
  expect((await client.get(leaseKind, KEY)).spec.leaseTransitions).toBe(1);
});

test('a follower reads nothing while its watch shows renewals', async () => {
  start('first');
  await settle();
  start('second', { random: () => 0.5 });
  await clock.advanceAsync(2000);
  let reads = 0;
  const get = leases.get.bind(leases);
  leases.get = (...args) => {
    reads += 1;
    return get(...args);
  };
  await clock.advanceAsync(600_000);
  expect(reads).toBe(0);
});

test('the default identity is unique for each elector of a host', () => {
  const options = { client, clock, ...KEY, onStartedLeading: async () => undefined };
  const [one, other] = [new LeaderElector(options), new LeaderElector(options)];
  expect(one.identity).toMatch(/^.+_[0-9a-f-]{36}$/);
  expect(one.identity).not.toBe(other.identity);
});

test.each(['down', 'hang'] as const)(
  'a leader whose server is %s stops in time, and leads again after it',
  async (fault) => {
    const errors: string[] = [];
    const { elector } = start('first', { onError: (error) => errors.push(String(error)) });
    await clock.advanceAsync(1000);
    leases.fault = fault;
    await clock.advanceAsync(8999);
    expect(elector.isLeader()).toBe(true);
    await clock.advanceAsync(1);
    expect(elector.isLeader()).toBe(false);
    expect(log).toEqual(['first works', 'first stopped', 'first ends, lost']);
    expect(errors[0]).toContain('cannot renew Lease default/sluice: ');
    leases.fault = 'none';
    await clock.advanceAsync(5000);
    expect(elector.isLeader()).toBe(true);
  },
);

test('a leader whose responses are lost stops, and no other candidate leads before the lease has expired', async () => {
  const first = start('first');
  await settle();
  leases.fault = 'lose';
  const second = start('second');
  await clock.advanceAsync(24_999);
  expect([first.elector.isLeader(), second.elector.isLeader()]).toEqual([false, false]);
});

test('a process that was stopped knows before it handles any event that it leads no longer', async () => {
  let pausedMs = 0;
  const { elector } = start('first', { monotonicNow: () => clock.now() + pausedMs });
  await clock.advanceAsync(3000);
  expect(elector.isLeader()).toBe(true);
  pausedMs = 20_000;
  expect(elector.isLeader()).toBe(false);
  await clock.advanceAsync(0);
  expect(log).toEqual(['first works']);
  await clock.advanceAsync(1000);
  // The next event ends the term; then it leads again, since no other candidate came.
  expect(log).toEqual(['first works', 'first stopped', 'first ends, lost', 'first works']);
});

test('the next term begins when the work of the last one has ended; health fails if that takes too long', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { elector } = start('first', {
    onStartedLeading: async () => {
      log.push('works');
      if (log.length === 1) await promise;
      else await new Promise(() => undefined);
    },
    onStoppedLeading: () => undefined,
  });
  await clock.advanceAsync(1000);
  leases.fault = 'down';
  await clock.advanceAsync(10_000);
  leases.fault = 'none';
  await clock.advanceAsync(24_000);
  expect(log).toEqual(['works']);
  elector.check();
  await clock.advanceAsync(1000);
  expect(() => elector.check()).toThrow('the term as leader ended 26 s ago, but the work of the leader goes on');
  resolve();
  await clock.advanceAsync(1000);
  expect(log).toEqual(['works', 'works']);
  elector.check();
});

describe('work that', () => {
  test('fails ends the run with its error and releases the lease', async () => {
    const { run } = start('first', {
      onStartedLeading: async () => {
        throw new Error('no disk');
      },
    });
    await expect(run).rejects.toThrow('no disk');
    expect(log).toEqual(['first stopped']);
    expect((await client.get(leaseKind, KEY)).spec.holderIdentity).toBe('');
  });

  test('does not end delays a stop until the renew deadline, and leaves the lease to expire', async () => {
    const { run, end, elector } = start('first', { onStartedLeading: () => new Promise(() => undefined) });
    await clock.advanceAsync(1000);
    end.abort();
    await clock.advanceAsync(9999);
    expect(elector.isLeader()).toBe(true);
    await clock.advanceAsync(1);
    await run;
    expect(elector.isLeader()).toBe(false);
    expect((await client.get(leaseKind, KEY)).spec.holderIdentity).toBe('first');
  });
});

test('records events about the Lease', async () => {
  const recorder = new EventRecorder({ client, clock, component: 'sluice' });
  const { stop } = start('first', { recorder });
  await settle();
  await stop();
  await recorder.flush();
  const { items } = await client.list(eventKind);
  const shown = items.map(({ involvedObject, type, reason, message }) => [involvedObject.name, type, reason, message]);
  expect(shown.sort()).toEqual([
    ['sluice', 'Normal', 'LeaderElection', 'first became leader'],
    ['sluice', 'Normal', 'LeaderElection', 'first stopped leading'],
  ]);
});

test('a candidate that cannot hold the lease stops at once, although the server does not respond', async () => {
  leases.fault = 'hang';
  const early = start('early');
  await early.stop();
  leases.fault = 'none';
  start('first');
  await settle();
  const second = start('second');
  await settle();
  leases.fault = 'hang';
  await clock.advanceAsync(5000);
  await second.stop();
  const end = new AbortController();
  end.abort();
  await new LeaderElector({ client, clock, ...KEY, onStartedLeading: async () => undefined }).run(end.signal);
});

test('a callback that stops the election while it handles an event changes nothing about it', async () => {
  const end = new AbortController();
  const elector = new LeaderElector({
    ...{ client, clock, ...KEY, identity: 'first', monotonicNow: () => clock.now() },
    onStartedLeading: async () => undefined,
    onStoppedLeading: () => {
      end.abort();
      throw new Error('refused');
    },
    onError: (error) => log.push(String(error)),
  });
  await elector.run(end.signal);
  expect(log).toEqual(['Error: refused']);
  expect((await client.get(leaseKind, KEY)).spec.holderIdentity).toBe('');
});
