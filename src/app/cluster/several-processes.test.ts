import { afterEach, beforeEach, expect, test } from 'vitest';
import { ANNA, type Fixture, fixture } from '../../../test/support/fixture.ts';
import { newServerTrust, newSigner } from '../../../test/support/trust.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { ClusterTrustLedger } from '../../package/trust/cluster/cluster-trust-ledger.ts';
import type { LedgerObject } from '../../package/trust/cluster/ledger-objects.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { EventLog } from '../../resource/watch/event-log.ts';

/** Two roles of one installation: one key, one ledger in the cluster, which no watch delivers here, and one repository. */
let api: Fixture;
let controllers: Fixture;
beforeEach(async () => {
  const clock = new ManualClock();
  const objects = new MemoryStorage<LedgerObject>(configMapKind, { clock, log: new EventLog({ clock }) });
  const signer = newSigner();
  const start = async (epoch: number) => {
    const ledger = await ClusterTrustLedger.open({ objects, namespace: 'sluice', name: 'trust', epoch, clock });
    const world = await fixture(clock, newServerTrust(signer, ledger));
    await ledger.flushed();
    return world;
  };
  api = await start(1);
  const repo = await api.register('apps');
  controllers = await start(2);
  await controllers.register('apps', { repo });
});
afterEach(async () => {
  await api[Symbol.asyncDispose]();
  await controllers[Symbol.asyncDispose]();
});

const sync = (world: Fixture) => world.store.repository('default/apps').sync();
const gates = async (world: Fixture, name: string) =>
  (await world.store.evaluate(name)).gates.map(({ state }) => state);

test('verdicts that one process records stay valid when another one writes, and in the drafts beside', async () => {
  const names: string[] = [];
  for (const path of ['one', 'two', 'three']) {
    const { name } = await api.draft(`apps/${path}/v1`);
    names.push(name);
    await api.store.change(name, { kptfile: [{ op: 'addGate', conditionType: 'tested' }] }, ANNA);
    await sync(controllers);
    await api.store.change(name, { conditions: [{ type: 'tested', status: 'True', reason: 'Ok' }] }, ANNA);
    await sync(controllers);
    expect(await gates(controllers, name)).toEqual(['Open']);
    // As a resolver does.
    const condition = { type: 'sluice.dev/Deliverable', status: 'True', reason: 'Ok' } as const;
    await controllers.store.change(name, { conditions: [condition] }, ANNA);
    await sync(api);
    for (const known of names)
      for (const world of [api, controllers]) expect(await gates(world, known)).toEqual(['Open']);
  }
  for (const world of [api, controllers])
    for (const name of names) expect(world.store.get(name).recordDistrust).toBeUndefined();
});
