import { afterEach, beforeEach, expect, test } from 'vitest';
import { Informer } from '../../controller/informer.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { MAX_LISTS_PER_NAMESPACE, NamedLists } from './named-lists.ts';

const clock = systemClock;
let client: RegistryClient;
let repositories: Informer<Repository>;
let lists: NamedLists;
/** Namespace and names of all ConfigMaps that were requested. */
let read: string[];
/** Watches that run. */
let watches: Set<string>;

beforeEach(async () => {
  read = [];
  watches = new Set();
  const log = new EventLog({ clock });
  const registry = new Registry();
  const configMaps = new MemoryStorage(configMapKind, { clock, log });
  const list = configMaps.list.bind(configMaps);
  configMaps.list = async (context, options) => {
    const { items, ...result } = await list(context, options);
    read.push(...items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`));
    return { items, ...result };
  };
  const watch = configMaps.watch.bind(configMaps);
  configMaps.watch = (context, options) => {
    const name = JSON.stringify(options.fieldSelector ?? 'all');
    watches.add(name);
    options.signal.addEventListener('abort', () => watches.delete(name));
    return watch(context, options);
  };
  registry.register(configMaps);
  registry.register(new MemoryStorage(repositoryKind, { clock, log }));
  client = new RegistryClient(registry, { name: 'anna' }, 'cli');
  repositories = new Informer({ client, kind: repositoryKind, clock });
  lists = new NamedLists({ client, clock, repositories, onError: () => undefined });
  repositories.start();
  await repositories.whenSynced();
});

afterEach(async () => {
  await lists.stop();
  await repositories.stop();
});

function register(name: string, list?: string, kind = 'allowed-signers') {
  const annotations = list === undefined ? {} : { [`sluice.dev/${kind}`]: list };
  return client.create(repositoryKind, { metadata: { name, annotations }, spec: { git: { repo: '/p.git' } } });
}

function store(name: string) {
  return client.create(configMapKind, { metadata: { name }, data: { allowed_signers: '' } });
}

const keyOf = (name: string) => ({ namespace: 'default', name });

async function refresh(): Promise<void> {
  await repositories.refresh();
  await lists.refresh(repositories.list());
}

test('only what a Repository names is read', async () => {
  for (const name of ['people', 'accounts', 'large-1', 'large-2']) await store(name);
  await register('a', 'people');
  await register('b', 'accounts', 'host-users');
  await register('c');
  await refresh();
  expect(lists.get(keyOf('people'))?.metadata.name).toBe('people');
  expect(lists.get(keyOf('accounts'))?.metadata.name).toBe('accounts');
  expect([...new Set(read)].sort()).toEqual(['default/accounts', 'default/people']);
});

test('a list that was not read is unknown, and one that was read may be absent', async () => {
  expect(() => lists.get(keyOf('people'))).toThrow(expect.objectContaining({ code: 'Unavailable' }));
  await register('a', 'people');
  await repositories.refresh();
  expect(() => lists.get(keyOf('people'))).toThrow(expect.objectContaining({ code: 'Unavailable' }));
  await lists.refresh(repositories.list());
  expect(lists.get(keyOf('people'))).toBeUndefined();
  await store('people');
  await refresh();
  expect(lists.get(keyOf('people'))?.metadata.name).toBe('people');
});

test('informers follow the names', async () => {
  await register('a', 'people');
  const b = await register('b', 'people');
  await expect.poll(() => watches.size).toBe(1);
  await store('people');
  await expect.poll(() => lists.get(keyOf('people'))?.metadata.name).toBe('people');
  await client.delete(repositoryKind, keyOf('a'));
  await client.update(repositoryKind, { ...b, metadata: { ...b.metadata, annotations: {} } });
  await expect.poll(() => watches.size).toBe(0);
  expect(() => lists.get(keyOf('people'))).toThrow(expect.objectContaining({ code: 'Unavailable' }));
});

test('a name that no ConfigMap can have is that of none', async () => {
  await register('a', 'people,metadata.namespace!=default');
  await refresh();
  expect(lists.get(keyOf('people,metadata.namespace!=default'))).toBeUndefined();
  expect(lists.get(keyOf(''))).toBeUndefined();
  expect(watches.size).toBe(0);
});

test('Repositories that name too many lists take none from older ones', async () => {
  await register('old', 'people');
  for (let index = 0; index < MAX_LISTS_PER_NAMESPACE; index += 1)
    await register(`r${String(index).padStart(3, '0')}`, `list-${index}`);
  await refresh();
  expect(lists.get(keyOf('people'))).toBeUndefined();
  expect(lists.get(keyOf(`list-${MAX_LISTS_PER_NAMESPACE - 2}`))).toBeUndefined();
  expect(() => lists.get(keyOf(`list-${MAX_LISTS_PER_NAMESPACE - 1}`))).toThrow(
    expect.objectContaining({ code: 'LimitExceeded', message: expect.stringContaining('let them share lists') }),
  );
});
