import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newServerTrust } from '../../../test/support/trust.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { canonicalAddressNow } from '../../git/open/repository-address.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import type { Storage } from '../../resource/storage/storage.ts';
import { createDataFolder, dataFolder } from '../data/data-folder.ts';
import { ObjectSet } from '../data/object-set.ts';
import type { SessionObjects } from '../data/session-objects.ts';
import { Session } from './session.ts';

test('objects in a cluster are listed once: registrations are read from the informer', async () => {
  const folder = dataFolder(join(await mkdtemp(join(tmpdir(), 'sluice-registered-')), 'data'));
  await createDataFolder(folder);
  const stored = await ObjectSet.open({ folder, clock: systemClock, write: true });
  let lists = 0;
  const counted = stored.storages().map((storage): Storage => {
    if (storage.kind.plural !== repositoryKind.plural) return storage;
    const list = storage.list.bind(storage);
    storage.list = (...args) => {
      lists += 1;
      return list(...args);
    };
    return storage;
  });
  // Without a database of its own, as those of a cluster.
  const objects: SessionObjects = {
    log: stored.log,
    storages: () => counted,
    client: (actor) => stored.client(actor),
    close: () => stored.close(),
  };
  const session = await Session.openOn(
    { folder, actor: { name: 'sluice' }, write: true, opens: true },
    { objects, openTrust: async () => newServerTrust() },
  );
  try {
    const git = { repo: 'https://git.example/apps.git' };
    await session.client.create(repositoryKind, { metadata: { name: 'apps' }, spec: { git } });
    await expect.poll(() => session.repositories.named('apps')).toEqual(['default/apps']);
    expect(await session.repositories.isRegistered(canonicalAddressNow(git.repo))).toBe(true);
    lists = 0;
    for (let count = 0; count < 10; count += 1) {
      expect(await session.repositories.isRegistered(canonicalAddressNow(git.repo))).toBe(true);
      expect(await session.repositories.list()).toHaveLength(1);
    }
    expect(lists).toBe(0);
  } finally {
    await session.close();
    await rm(folder.path, { recursive: true, force: true });
  }
});
