import { afterEach, beforeEach, expect, test } from 'vitest';
import { anna, type Scratch, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { MAIN_LAYOUT, newServerTrust, serverTrust, trustOf } from '../../../../test/support/trust.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { GitRepository } from '../../../git/git-repository.ts';
import { openRepository } from '../../../git/open/open-repository.ts';
import { canonicalAddressNow } from '../../../git/open/repository-address.ts';
import { openRepositoryTrust, type ServerTrust } from './open-repository-trust.ts';

let scratch: Scratch;
beforeEach(async () => {
  scratch = await scratchRepository();
});
afterEach(() => scratch[Symbol.asyncDispose]());

type Running = Awaited<ReturnType<Scratch['open']>>;

/** As "sluice repo adopt packages --new-id --yes" beside a running process. Returns the id. */
async function giveNewId(server: ServerTrust = serverTrust): Promise<string> {
  const git = await openRepository(scratch.path);
  try {
    const { trust } = await openRepositoryTrust({
      ...{ git, remote: undefined, layout: MAIN_LAYOUT, address: scratch.path, server, clock: scratch.clock },
      identity: { name: 'sluice', email: 'sluice@localhost' },
      trustedKeys: () => new Map(serverTrust.ledger.keys().map((key) => [key.fingerprint, key])),
      refetch: async () => undefined,
      newId: true,
    });
    return trust.repository;
  } finally {
    await git.close();
  }
}

/** `target` with another method. */
function withMethod<Target extends object, Name extends keyof Target>(
  target: Target,
  name: Name,
  method: Target[Name],
): Target {
  return new Proxy(target, {
    get(_, wanted) {
      const value: unknown = wanted === name ? method : Reflect.get(target, wanted);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

async function draft({ store }: Running, name: string): Promise<string> {
  const source = { type: 'init', description: name } as const;
  return (await store.create('packages', { package: name, workspace: 'v1', source }, anna)).name;
}

async function publish(running: Running, packageName: string): Promise<string> {
  const name = await draft(running, packageName);
  for (const action of ['propose', 'approve'] as const) await running.store.update(name, { action }, anna);
  return name;
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
  const git = withMethod(opened, 'transaction', transaction);
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

test('a sync reads a new id whose process ended before the ledger had it, as the next opening does', async () => {
  const running = await scratch.open();
  const before = running.repository.trust.repository;
  const ledger = withMethod(serverTrust.ledger, 'enterRepository', () => {
    throw new Error('killed');
  });
  await expect(giveNewId({ ...serverTrust, ledger })).rejects.toThrow('killed');
  await running.repository.sync();
  expect(running.repository.trust.repository).not.toBe(before);
  const name = await publish(running, 'later');
  await running.repository.sync();
  const again = await scratch.open();
  for (const { store } of [running, again])
    expect(store.get(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  expect(again.repository.trust.repository).toBe(running.repository.trust.repository);
});

test('a sync reads no id that a key signed which is not trusted, nor one that follows another id', async () => {
  const running = await scratch.open();
  const { repository: before } = running.repository.trust;
  const stranger = newServerTrust();
  stranger.ledger.putRepository({ id: before, address: canonicalAddressNow(scratch.path), mainHeads: {} });
  await giveNewId(stranger);
  await running.repository.sync();
  expect(running.repository.trust.repository).toBe(before);
  const other = newServerTrust(serverTrust.signer());
  await giveNewId(other);
  await running.repository.sync();
  expect(running.repository.trust.repository).toBe(before);
});

test.each(['propose', 'approve'] as const)(
  'a request to %s that was planned for an id that the repository has no more is not written',
  async (action) => {
    const opened = await openRepository(scratch.path);
    let meanwhile: (() => Promise<unknown>) | undefined;
    const git = withMethod(opened, 'writeCommit', async (commit) => {
      const oid = await opened.writeCommit(commit);
      const run = meanwhile;
      meanwhile = undefined;
      await run?.();
      return oid;
    });
    const running = await scratch.open({ git });
    const name = await draft(running, 'web');
    if (action === 'approve') await running.store.update(name, { action: 'propose' }, anna);
    const before = running.store.get(name);
    meanwhile = giveNewId;
    // An approval is planned again, with the record of a proposal that counts no more.
    const message =
      action === 'approve' ? /reject it, then propose it again/ : /nothing was written.*new id.*try again/;
    await expect(running.store.update(name, { action }, anna)).rejects.toThrow(message);
    await running.repository.sync();
    const { lifecycle, refOid, recordOid } = before;
    expect(running.store.get(name)).toMatchObject({ lifecycle, refOid, recordOid });
    expect(await publish(running, 'next')).toBe('packages.next.v1');
    expect(running.store.get('packages.next.v1')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  },
);
