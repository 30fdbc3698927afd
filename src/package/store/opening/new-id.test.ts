import { afterEach, beforeEach, expect, test } from 'vitest';
import { anna, type Scratch, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { MAIN_LAYOUT, newServerTrust, serverTrust, trustOf } from '../../../../test/support/trust.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { GitRepository } from '../../../git/git-repository.ts';
import { openRepository } from '../../../git/open/open-repository.ts';
import { canonicalAddressNow } from '../../../git/open/repository-address.ts';
import { openRepositoryTrust } from './open-repository-trust.ts';

let scratch: Scratch;
beforeEach(async () => {
  scratch = await scratchRepository();
});
afterEach(() => scratch[Symbol.asyncDispose]());

type Running = Awaited<ReturnType<Scratch['open']>>;

/** As "sluice repo adopt packages --new-id --yes" beside a running process. Returns the id. */
async function giveNewId(): Promise<string> {
  const git = await openRepository(scratch.path);
  const { trust } = await openRepositoryTrust({
    ...{
      git,
      remote: undefined,
      layout: MAIN_LAYOUT,
      address: scratch.path,
      server: serverTrust,
      clock: scratch.clock,
    },
    identity: { name: 'sluice', email: 'sluice@localhost' },
    trustedKeys: () => new Map(serverTrust.ledger.keys().map((key) => [key.fingerprint, key])),
    refetch: async () => undefined,
    newId: true,
  });
  await git.close();
  return trust.repository;
}

async function publish({ store }: Running, name: string): Promise<string> {
  const source = { type: 'init', description: name } as const;
  const draft = await store.create('packages', { package: name, workspace: 'v1', source }, anna);
  for (const action of ['propose', 'approve'] as const) await store.update(draft.name, { action }, anna);
  return draft.name;
}

test.each(['that it has read at a sync', 'before its next sync'])(
  'what a running process publishes after another one gave the repository a new id counts: %s',
  async (when) => {
    const running = await scratch.open();
    const earlier = await publish(running, 'earlier');
    const id = await giveNewId();
    if (when === 'that it has read at a sync') await running.repository.sync();
    const later = await publish(running, 'later');
    expect(running.repository.trust.repository).toBe(id);
    for (const { store } of [running, await scratch.open()]) {
      expect(store.get(later)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
      expect(store.get(earlier).outOfBand?.reason).toBe('OtherRepository');
    }
  },
);

test('a running process reports what counts no more under the new id at its next sync', async () => {
  const running = await scratch.open();
  const earlier = await publish(running, 'earlier');
  await giveNewId();
  await publish(running, 'later');
  const changes = await running.repository.sync();
  expect(changes.map(({ after }) => after?.name)).toContain(earlier);
});

test('what was read before the id of another process is known counts once it is', async () => {
  const opened = await openRepository(scratch.path);
  const transaction: GitRepository['transaction'] = async () => {
    throw new SluiceError('Unavailable', 'this process does not write');
  };
  const git = new Proxy(opened, {
    get(target, name) {
      if (name === 'transaction') return transaction;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  // As on a standby, whose ledger gets what the leader writes some time later.
  const server = newServerTrust(serverTrust.signer());
  const trusted = await trustOf(git, scratch.path, MAIN_LAYOUT, server, undefined, scratch.clock);
  const reader = await scratch.open({ git, ...trusted });
  const leader = await scratch.open();
  const name = await publish(leader, 'web');
  await reader.repository.sync();
  expect(reader.store.get(name).outOfBand?.reason).toBe('OtherRepository');
  const { repository: id } = leader.repository.trust;
  server.ledger.putRepository({ id, address: canonicalAddressNow(scratch.path), mainHeads: {} });
  const changes = await reader.repository.sync();
  expect(changes.map(({ after }) => after?.name)).toContain(name);
  expect(reader.store.get(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
});
