import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../../cli/testing.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { DEFAULT_NETWORK } from '../../git/network/git-network.ts';
import type { PackageRevision } from '../../package/model/revision/package-revision.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { OBJECT_KINDS } from '../../resource/kinds/index.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { dataFolder } from '../data/data-folder.ts';
import { Session } from '../session/session.ts';
import { ObjectReaders } from './object-readers.ts';
import { policyOf } from './session-policy.ts';

const PACKAGES = { namespace: 'default', name: 'packages' };
const REQUIRE_TESTED = { selector: {}, requiredGates: [{ conditionType: 'tested' }] };

describe('a session', () => {
  let cli: CliFixture;
  beforeEach(async () => {
    cli = await cliFixture();
  });
  afterEach(() => cli[Symbol.asyncDispose]());

  test('refuses an approval by a policy that was acknowledged just before it', async () => {
    await cli.run('repo', 'reg', cli.bare('packages.git'));
    const session = await Session.open({
      ...{ folder: dataFolder(cli.data), actor: { name: 'anna' }, write: true, network: DEFAULT_NETWORK },
    });
    try {
      await session.repositories.open('default/packages');
      const wanted = { package: 'web', workspace: 'v1', source: { type: 'init' } } as const;
      const { name } = await session.store.create('packages', wanted, session.context());
      await session.store.update(name, { action: 'propose' }, session.context());
      const { client } = session;
      const proposed = await client.get(packageRevisionKind, { name });
      const approved = { ...proposed, spec: { ...proposed.spec, lifecycle: 'Published' as const } };
      const approve = () => client.subResource('approval').update(packageRevisionKind, approved);
      // Written and decided without a turn of the event loop between them.
      const refused = client
        .create(packagePolicyKind, { metadata: { name: 'gate' }, spec: REQUIRE_TESTED })
        .then(approve);
      await expect(refused).rejects.toMatchObject({ code: 'Refused', message: expect.stringContaining('tested') });
      await expect(client.delete(packagePolicyKind, { name: 'gate' }).then(approve)).resolves.toMatchObject({
        spec: { lifecycle: 'Published' },
      });
    } finally {
      await session.close();
    }
  });
});

/** Readers whose watches deliver nothing, and whose first lists wait until `open` is called. */
function slowReaders() {
  const log = new EventLog({ clock: systemClock });
  const registry = new Registry();
  const gate = Promise.withResolvers<void>();
  for (const kind of OBJECT_KINDS) {
    const storage = new MemoryStorage(kind, { clock: systemClock, log });
    const list = storage.list.bind(storage);
    storage.list = async (...parameters) => {
      await gate.promise;
      return list(...parameters);
    };
    storage.watch = (_context, { signal }) => ({
      async *[Symbol.asyncIterator]() {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    });
    registry.register(storage);
  }
  const client = new RegistryClient(registry, { name: 'anna' }, 'cli');
  return { client, readers: new ObjectReaders({ client, clock: systemClock }), open: gate.resolve };
}

const REVISION = {
  key: { repository: 'packages', package: 'web', workspace: 'v1' },
  path: 'web',
} as unknown as PackageRevision;

describe('policies', () => {
  test('are unknown before the first list, which is not the same as none', async () => {
    const { client, readers, open } = slowReaders();
    await client.create(repositoryKind, { metadata: { name: 'packages' }, spec: { git: { repo: '/p.git' } } });
    await client.create(packagePolicyKind, { metadata: { name: 'gate' }, spec: REQUIRE_TESTED });
    const started = readers.start();
    expect(() => policyOf(readers, REVISION, 'default')).toThrow(
      expect.objectContaining({ code: 'Unavailable', message: expect.stringContaining('have not been read yet') }),
    );
    const refreshed = readers.refresh(PACKAGES).then(() => policyOf(readers, REVISION, 'default'));
    open();
    expect((await refreshed).requiredGates).toMatchObject([{ conditionType: 'tested' }]);
    await started;
    await readers.stop();
  });

  test('are current after a refresh although no watch delivers anything', async () => {
    const { client, readers, open } = slowReaders();
    open();
    await readers.start();
    const annotations = { 'sluice.dev/allowed-signers': 'people', 'sluice.dev/gates': 'warn' };
    await client.create(configMapKind, { metadata: { name: 'people' }, data: {} });
    await client.create(repositoryKind, {
      metadata: { name: 'packages', annotations },
      spec: { git: { repo: '/p.git' } },
    });
    await client.create(packagePolicyKind, { metadata: { name: 'gate' }, spec: REQUIRE_TESTED });
    await readers.refresh(PACKAGES);
    const policy = policyOf(readers, REVISION, 'default');
    expect(policy.enforcement).toBe('warn');
    expect(policy.requiredGates).toMatchObject([{ conditionType: 'tested' }]);
    expect(policy.people.problems).toEqual([expect.stringContaining('has no key')]);
    await client.delete(packagePolicyKind, { name: 'gate' });
    await readers.refresh(PACKAGES);
    expect(policyOf(readers, REVISION, 'default').requiredGates).toEqual([]);
    await readers.stop();
  });
});
