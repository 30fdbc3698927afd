import { expect, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import type { PackageRevision } from '../../package/model/revision/package-revision.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { OBJECT_KINDS } from '../../resource/kinds/index.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { ObjectReaders } from './object-readers.ts';
import { policyOf } from './session-policy.ts';

const PACKAGES = { namespace: 'default', name: 'packages' };
const SHARED = 'https://git.example.com/shared.git';
const REVISION = {
  key: { repository: 'packages', package: 'web', workspace: 'v1' },
  path: 'web',
} as unknown as PackageRevision;

/** Readers as in a cluster, whose watches deliver nothing after `start`, and the lists that they request. */
function clusterReaders(hasRead: (id: string) => boolean = () => false) {
  const log = new EventLog({ clock: systemClock });
  const registry = new Registry();
  const lists: { readonly kind: string; readonly namespace: string | undefined; readonly items: number }[] = [];
  for (const kind of OBJECT_KINDS) {
    const storage = new MemoryStorage(kind, { clock: systemClock, log });
    const list = storage.list.bind(storage);
    storage.list = async (context, options) => {
      const result = await list(context, options);
      lists.push({ kind: kind.kind, namespace: options?.namespace, items: result.items.length });
      return result;
    };
    storage.watch = (_context, { signal }) => ({
      async *[Symbol.asyncIterator]() {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    });
    registry.register(storage);
  }
  const client = new RegistryClient(registry, { name: 'anna' }, 'cli');
  const register = (namespace: string, name: string, repo: string) =>
    client.create(repositoryKind, { metadata: { namespace, name }, spec: { git: { repo } } });
  const require = (namespace: string, conditionType: string) =>
    client.create(packagePolicyKind, {
      metadata: { namespace, name: conditionType },
      spec: { selector: {}, requiredGates: [{ conditionType }] },
    });
  return { client, register, require, lists, readers: new ObjectReaders({ client, clock: systemClock, hasRead }) };
}

async function listsOfDecision(otherNamespaces: number) {
  const { client, register, require, lists, readers } = clusterReaders();
  await register('default', 'packages', SHARED);
  await require('default', 'tested');
  for (let index = 0; index < otherNamespaces; index += 1) {
    const namespace = `team-${index}`;
    await register(namespace, 'packages', `https://git.example.com/${namespace}.git`);
    await require(namespace, 'reviewed');
    await client.create(deliveryTargetKind, {
      metadata: { namespace, name: 'prod' },
      spec: { selector: {}, git: { repo: `https://git.example.com/${namespace}-prod.git` } },
    });
  }
  await readers.start();
  lists.length = 0;
  await readers.refresh(PACKAGES);
  expect(policyOf(readers, REVISION, 'default').requiredGates).toMatchObject([{ conditionType: 'tested' }]);
  await readers.stop();
  return lists;
}

test('a decision in a cluster reads its own namespace, whatever others contain', async () => {
  const one = await listsOfDecision(1);
  expect(one).toEqual([
    { kind: 'Repository', namespace: 'default', items: 1 },
    { kind: 'PackagePolicy', namespace: 'default', items: 1 },
    { kind: 'Freeze', namespace: 'default', items: 0 },
    { kind: 'DeliveryTarget', namespace: 'default', items: 0 },
    { kind: 'Freeze', namespace: 'sluice-system', items: 0 },
  ]);
  expect(await listsOfDecision(200)).toEqual(one);
});

test('what a namespace that shares the packages has tightened holds for the next decision, before its watch delivers it', async () => {
  const read = new Set<string>();
  const { register, require, lists, readers } = clusterReaders((id) => read.has(id));
  await register('default', 'packages', SHARED);
  await register('partner', 'same', 'https://git.example.com/shared');
  await register('stranger', 'unread', SHARED);
  await readers.start();
  const gates = () => policyOf(readers, REVISION, 'default').requiredGates.map(({ conditionType }) => conditionType);
  await require('partner', 'reviewed');
  await readers.refresh(PACKAGES);
  expect(gates()).toEqual([]);
  // The process reads the repository before its status reports that.
  read.add('partner/same');
  await require('default', 'tested');
  lists.length = 0;
  await readers.refresh(PACKAGES);
  expect(gates().sort()).toEqual(['reviewed', 'tested']);
  expect([...new Set(lists.map(({ namespace }) => namespace))]).toEqual(['default', 'partner', 'sluice-system']);
  await readers.stop();
});
