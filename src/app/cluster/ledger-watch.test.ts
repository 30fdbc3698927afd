import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { ClusterTrustLedger } from '../../package/trust/cluster/cluster-trust-ledger.ts';
import { LEDGER_LABEL, type LedgerObject } from '../../package/trust/cluster/ledger-objects.ts';
import { raiseOf, scope } from '../../package/trust/ledger/trust-ledger.conformance.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { watchLedger } from './ledger-watch.ts';
import { LEDGER_NAME } from './open-cluster-session.ts';

const namespace = 'sluice-system';
let clock: ManualClock;
let objects: MemoryStorage<LedgerObject>;
let client: RegistryClient;
let warnings: string[];
let ends: (() => unknown)[];
beforeEach(() => {
  clock = new ManualClock();
  objects = new MemoryStorage<LedgerObject>(configMapKind, { log: new EventLog({ clock }), clock });
  const registry = new Registry();
  registry.register(objects as never);
  client = new RegistryClient(registry, { name: 'sluice' }, 'controller');
  warnings = [];
  ends = [];
});
afterEach(async () => {
  for (const end of ends) await end();
});

async function open(epoch: number, readOnly = false) {
  const ledger = await ClusterTrustLedger.open({ objects, namespace, name: LEDGER_NAME, epoch, clock, readOnly });
  ends.push(() => ledger.close());
  return ledger;
}

/** Calls `onWritten` for each repository; `undefined` for any. */
function follow(ledger: ClusterTrustLedger, onWritten: (repository: string | undefined) => void = () => undefined) {
  const warn = (_subject: string, message: string) => void warnings.push(message);
  const each = (ids: ReadonlySet<string> | undefined) => {
    for (const id of ids ?? [undefined]) onWritten(id);
  };
  const watch = watchLedger({ client, clock, namespace, ledger, onWritten: each, warn });
  ends.push(() => watch.stop());
}

/** Polls while the time of the watch and the ledger passes. */
function eventually(condition: () => Promise<void> | void) {
  return expect
    .poll(async () => {
      await clock.advanceAsync(1000);
      try {
        await condition();
        return 'done';
      } catch (error) {
        return String(error);
      }
    })
    .toBe('done');
}

const names = async () => (await client.list(configMapKind)).items.map(({ metadata }) => metadata.name).sort();

test('a leader writes an object again that is deleted', async () => {
  const ledger = await open(1);
  ledger.raise([raiseOf('x', 1)]);
  ledger.putRepository({ id: 'r1', address: 'one', mainHeads: {} });
  await ledger.flushed();
  const before = await names();
  follow(ledger);
  await eventually(() => expect(ledger.mark(scope('x'))).toBeDefined());
  for (const name of before) await client.delete(configMapKind, { namespace, name });
  await eventually(async () => expect(await names()).toEqual(before));
  expect((await open(2)).mark(scope('x'))).toEqual(ledger.mark(scope('x')));
});

test('a damaged object is reported once, and does not keep the changes of others from being joined', async () => {
  const leader = await open(1);
  const standby = await open(0, true);
  follow(standby);
  const labels = { [LEDGER_LABEL]: LEDGER_NAME };
  const damaged = { namespace, name: `${LEDGER_NAME}-key-1` };
  await client.create(configMapKind, { metadata: { ...damaged, labels }, data: { content: '{' } });
  for (let sequence = 1; sequence <= 3; sequence += 1) {
    await client.patch(configMapKind, damaged, { metadata: { annotations: { at: String(sequence) } } });
    leader.raise([raiseOf('x', sequence), raiseOf('y', sequence)]);
    leader.putRepository({ id: `r${sequence}`, address: 'one', mainHeads: {} });
    await leader.flushed();
    await eventually(() => {
      for (const name of ['x', 'y']) expect(standby.mark(scope(name))).toMatchObject({ sequence });
      expect(standby.repository(`r${sequence}`)).toBeDefined();
    });
  }
  expect(warnings).toEqual([expect.stringContaining(`ConfigMap ${namespace}/${damaged.name} is damaged`)]);
});

test('what a sync has joined of other repositories before the watch delivers it is reported too', async () => {
  const leader = await open(1);
  const other = await open(2);
  const written: (string | undefined)[] = [];
  follow(other, (repository) => written.push(repository));
  leader.raise([raiseOf('x', 1)]);
  await leader.flushed();
  // As a sync that has fetched another revision, whose mark is in the same object.
  await other.joinLatest([scope('x')]);
  await eventually(() => expect(written).toContain(scope('x').repository));
});
