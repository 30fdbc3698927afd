import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { openPackageRepository } from '../../src/package/store/opening/open-package-repository.ts';
import type { ServerTrust } from '../../src/package/store/opening/open-repository-trust.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { publish } from '../support/delivery.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';
import { git as gitCli } from '../support/git/git-cli.ts';
import { newServerTrust } from '../support/trust.ts';

const TAG = 'refs/tags/web/v1';
const UNWRITABLE =
  /^the write was committed in Git, and cannot be recorded in the trust ledger: .*Read the revision before/;

let trust: ServerTrust;
let world: Fixture;
let repo: string;
beforeEach(async () => {
  trust = newServerTrust();
  world = await fixture(new ManualClock(), trust);
  repo = await world.register('apps');
});
afterEach(() => world[Symbol.asyncDispose]());

const git = (...words: string[]) => gitCli(repo, words);

/** Runs a step while the ledger cannot be written any more once the step has begun, and was noted. */
async function withoutLedger(step: () => Promise<unknown>): Promise<void> {
  const { ledger } = trust;
  const { raise } = ledger;
  ledger.raise = (entries, options) => {
    if (entries.every(({ scope }) => scope.workspace.startsWith('signed/')))
      return raise.call(ledger, entries, options);
    throw new SluiceError('Busy', 'cannot write the trust ledger');
  };
  try {
    await step();
  } finally {
    ledger.raise = raise;
  }
}

/** The repository as another process sees it: with this ledger, or that of another server. */
async function open(server: ServerTrust, folder: string): Promise<PackageRepository> {
  const { clock, policyFor, client } = world;
  const options = { trust: server, clock, policyFor, dataFolder: join(world.folder, folder) };
  return openPackageRepository(await client.get(repositoryKind, { name: 'apps' }), {
    ...{ ...options, dependentsOf: () => [], onChange: () => undefined },
  });
}

function outOfBand(repository: PackageRepository): string | undefined {
  return repository.index.get('apps.web.w1')?.outOfBand?.reason;
}

async function deleteWithoutLedger(): Promise<string> {
  const name = await publish(world, 'web', '1');
  const tag = git('rev-parse', TAG);
  await world.store.update(name, { action: 'propose-deletion' }, ANNA);
  const deletion = withoutLedger(() => world.store.update(name, { action: 'delete' }, ANNA));
  await expect(deletion).rejects.toThrow(UNWRITABLE);
  expect(git('tag')).toBe('');
  return tag;
}

test('a deletion that ended before it was in the ledger is noted by the next process, from the tombstone', async () => {
  const tag = await deleteWithoutLedger();
  const next = await open(trust, 'next');
  git('update-ref', TAG, tag);
  await next.refresh();
  expect(outOfBand(next)).toBe('RolledBack');
  await next.close();
});

test('also if the tag is restored before the next process syncs', async () => {
  const tag = await deleteWithoutLedger();
  git('update-ref', TAG, tag);
  const next = await open(trust, 'next');
  expect(outOfBand(next)).toBe('RolledBack');
  await next.close();
});

test('another server detects a deletion that it did not make', async () => {
  const other = newServerTrust();
  const { fingerprint, publicKey } = trust.signer();
  other.ledger.addKey({ fingerprint, publicKey, comment: '', origin: 'added', addedAt: '2026-01-01T00:00:00Z' });
  const name = await publish(world, 'web', '1');
  const tag = git('rev-parse', TAG);
  for (const action of ['propose-deletion', 'delete'] as const) await world.store.update(name, { action }, ANNA);
  const onOther = await open(other, 'other');
  git('update-ref', TAG, tag);
  await onOther.refresh();
  expect(outOfBand(onOther)).toBe('RolledBack');
  // What an operator adopts counts again, for every server.
  const apps = world.store.repository('apps');
  await apps.refresh();
  await apps.adopt(await apps.adoptable(), ANNA);
  expect(outOfBand(apps)).toBeUndefined();
  expect(git('for-each-ref', 'refs/sluice/deleted')).toBe('');
  await onOther.close();
});

test('a write whose marks could not be recorded reports it, and the next sync records them', async () => {
  const { name } = await world.draft('apps/web/w1', { 'cm.yaml': 'a: b\n' });
  const record = git('rev-parse', 'refs/sluice/records/web/w1');
  const draft = git('rev-parse', 'refs/heads/drafts/web/w1');
  const deletion = withoutLedger(() => world.store.update(name, { action: 'delete' }, ANNA));
  await expect(deletion).rejects.toThrow(UNWRITABLE);
  const apps = world.store.repository('apps');
  await apps.refresh();
  git('update-ref', 'refs/sluice/records/web/w1', record);
  git('update-ref', 'refs/heads/drafts/web/w1', draft);
  await apps.refresh();
  expect(apps.index.get(name)?.recordDistrust?.reason).toBe('RolledBack');
});
