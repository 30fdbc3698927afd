import { expect, test, vi } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { AttributedPushes } from '../../src/package/trust/ledger/attributed-pushes.ts';
import { SqliteAttributedPushes } from '../../src/package/trust/sqlite/sqlite-attributed-pushes.ts';
import type { StatementSigner } from '../../src/package/trust/statement/statement-signature.ts';
import { eventKind } from '../../src/resource/kinds/core/event.ts';
import { repositoryKind, TRUST_CONDITION, TRUSTED_KEYS_ANNOTATION } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { fixture } from '../../test/support/fixture.ts';
import { repositoryControllerOf } from '../../test/support/repository-controller.ts';
import { newServerTrust, newSigner } from '../../test/support/trust.ts';

const CONTEXT = { signal: new AbortController().signal, failures: 0 };

/** A server whose key can be exchanged while it runs, with a repository that lists the first one. */
async function serverWithListedKey(first: () => StatementSigner, listed: string, pushes?: AttributedPushes) {
  const clock = new ManualClock();
  const world = await fixture(clock);
  const server = { ...newServerTrust(), pushes, signer: first };
  const controller = repositoryControllerOf(world, { trust: { ...server, signer: () => server.signer() } });
  const annotations = { [TRUSTED_KEYS_ANNOTATION]: listed };
  const repo = await world.bare('apps');
  await world.client.create(repositoryKind, { metadata: { name: 'apps', annotations }, spec: { git: { repo } } });
  const trust = async () => {
    clock.advance(1000);
    await controller.reconcile({ namespace: 'default', name: 'apps' }, CONTEXT);
    const { status } = await world.client.get(repositoryKind, { name: 'apps' });
    const { status: value, message } = findCondition(status?.conditions, TRUST_CONDITION) ?? {};
    return `${value} ${message}`.trim();
  };
  const repository = () => world.store.repository('apps');
  const events = async () =>
    (await world.client.list(eventKind)).items
      .filter(({ reason }) => reason === 'CannotSign' || reason === 'CanSign')
      .map(({ type, reason, count }) => `${type} ${reason} ${count ?? 1}`)
      .sort();
  const reason = async () => {
    const { status } = await world.client.get(repositoryKind, { name: 'apps' });
    return findCondition(status?.conditions, TRUST_CONDITION)?.reason;
  };
  return { server, trust, reason, events, repository, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

test('the Trust condition is about the current signing key, also after a rotation', async () => {
  const [first, second] = [newSigner(), newSigner()];
  await using at = await serverWithListedKey(() => first, first.publicKey);
  expect(await at.trust()).toBe('True');
  at.server.signer = () => second;
  expect(await at.trust()).toContain(`its key ${second.fingerprint} is not among those of the annotation`);
  at.server.signer = () => first;
  expect(await at.trust()).toBe('True');
});

test('a server that cannot sign reports it in the condition, with one event until it can again', async () => {
  const key = newSigner();
  await using at = await serverWithListedKey(() => key, key.publicKey);
  expect(await at.trust()).toBe('True');
  at.server.signer = () => {
    throw new SluiceError('Unavailable', 'there is no Secret a/b');
  };
  for (let round = 0; round < 3; round += 1) {
    expect(await at.trust()).toBe('False statements cannot be signed: there is no Secret a/b');
    expect(await at.reason()).toBe('CannotSign');
  }
  await expect.poll(at.events).toEqual(['Warning CannotSign 1']);
  at.server.signer = () => key;
  for (let round = 0; round < 3; round += 1) expect(await at.trust()).toBe('True');
  expect(await at.reason()).toBe('OwnKeyTrusted');
  await expect.poll(at.events).toEqual(['Normal CanSign 1', 'Warning CannotSign 1']);
  at.server.signer = () => {
    throw new SluiceError('Unavailable', 'there is no Secret a/b');
  };
  await at.trust();
  await expect.poll(at.events).toEqual(['Normal CanSign 1', 'Warning CannotSign 2']);
});

test('the Trust condition says that reports on a deleted draft could not be marked', async () => {
  const key = newSigner();
  const pushes = new SqliteAttributedPushes(':memory:');
  await using at = await serverWithListedKey(() => key, key.publicKey, pushes);
  expect(await at.trust()).toBe('True');
  const { trust, id } = at.repository();
  const supersede = vi.spyOn(pushes, 'supersede').mockImplementation(() => {
    throw new SluiceError('Unavailable', 'the disk is full');
  });
  trust.reports.supersede(id, ['refs/heads/drafts/shop/v1']);
  expect(await at.trust()).toMatch(/^False reports on pushes .* until they can be marked: the disk is full$/);
  supersede.mockRestore();
  expect(await at.trust()).toBe('True');
  pushes.close();
});

test('a repository is readable without a signing key, and its Trust condition names the next step', async () => {
  const key = newSigner();
  await using at = await serverWithListedKey(() => key, key.publicKey);
  expect(await at.trust()).toBe('True');
  at.server.signer = () => {
    throw new SluiceError('NotFound', 'Secret default/key does not exist; create it');
  };
  expect(await at.trust()).toBe('False statements cannot be signed: Secret default/key does not exist; create it');
});
