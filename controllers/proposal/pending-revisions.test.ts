import { afterEach, beforeEach, expect, test } from 'vitest';
import { Informer } from '../../src/controller/informer.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { PolicyChange } from '../../src/package/store/policies/concerned-revisions.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { freezeKind } from '../../src/resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import type { KubernetesObject, ObjectKey } from '../../src/resource/object/object.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import { MemoryStorage } from '../../src/resource/storage/memory/memory-storage.ts';
import { Registry } from '../../src/resource/storage/registry.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';
import { type PolicyScope, pendingRevisions } from './pending-revisions.ts';

const NAMESPACES = Array.from({ length: 10 }, (_, at) => `team-${at}`);
const PER_NAMESPACE = 100;
const GATE = { requiredGates: [{ conditionType: 'tested' }] };

let client: RegistryClient;
let informers: Map<string, Informer<never>>;
let woken: string[];
let end: () => void;

beforeEach(async () => {
  const log = new EventLog({ clock: systemClock });
  const registry = new Registry();
  for (const kind of [packageRevisionKind, repositoryKind, packagePolicyKind, freezeKind])
    registry.register(new MemoryStorage(kind as never, { clock: systemClock, log }));
  client = new RegistryClient(registry, { name: 'anna' }, 'cli');
  informers = new Map();
  woken = [];
  end = () => undefined;
  // In each namespace: half of the packages in each of two repositories, a tenth published.
  for (const namespace of NAMESPACES) {
    for (const name of ['apps', 'edge'])
      await client.create(repositoryKind, {
        metadata: { name, namespace, labels: { tier: name } },
        spec: { git: { repo: `/${namespace}/${name}.git` } },
      });
    for (let at = 0; at < PER_NAMESPACE; at += 1) {
      const repository = at % 2 === 0 ? 'apps' : 'edge';
      await client.create(packageRevisionKind, {
        metadata: { name: `${repository}.p${at}.v1`, namespace },
        spec: {
          ...{ repository, packageName: `p${at}`, workspaceName: 'v1' },
          lifecycle: at % 10 < 2 ? 'Published' : at % 10 < 6 ? 'Draft' : 'Proposed',
        },
      });
    }
  }
});
afterEach(async () => {
  end();
  for (const informer of informers.values()) await informer.stop();
});

const PENDING = PER_NAMESPACE * 0.8;

/** Starts the sources; what they wake at the beginning does not count. */
async function start(scope?: PolicyScope): Promise<void> {
  const informer = (kind: Kind) => {
    const known = informers.get(kind.kind) ?? new Informer<KubernetesObject>({ client, kind, clock: systemClock });
    informers.set(kind.kind, known as never);
    known.start();
    return known as never;
  };
  const store = {
    onPromotion: () => () => undefined,
    find: (id: string) => {
      const [namespace = '', name = ''] = id.split('/');
      const [repository = '', packageName = '', workspace = ''] = name.split('.');
      return { namespace, name, key: { repository, package: packageName, workspace } } as PackageRevision;
    },
  };
  const enqueue = ({ namespace, name }: ObjectKey) => void woken.push(`${namespace}/${name}`);
  const context = { informer, enqueue, prioritize: enqueue, track: () => undefined, release: () => undefined };
  const ends = pendingRevisions(store, scope).map((source) => source.start(context as never));
  end = () => {
    for (const one of ends) one();
  };
  for (const one of informers.values()) await one.whenSynced();
  woken.length = 0;
}

/** The revisions that wake up once something is done, each as often as it does. */
async function after(act: () => Promise<unknown>): Promise<string[]> {
  woken.length = 0;
  await act();
  await Promise.all([...informers.values()].map((informer) => informer.refresh()));
  return [...woken];
}

test('a policy wakes the pending revisions of its namespace that it selects', async () => {
  await start();
  const create = (name: string, selector: object) =>
    client.create(packagePolicyKind, { metadata: { name, namespace: 'team-3' }, spec: { selector, ...GATE } });
  const all = await after(() => create('all', {}));
  expect(all).toHaveLength(PENDING);
  expect(new Set(all.map((id) => id.split('/')[0]))).toEqual(new Set(['team-3']));
  expect(await after(() => create('one', { packages: ['p3'] }))).toEqual(['team-3/edge.p3.v1']);
  expect(await after(() => create('published', { packages: ['p0'] }))).toEqual([]);
  expect(await after(() => create('edge', { repositorySelector: { matchLabels: { tier: 'edge' } } }))).toHaveLength(
    PENDING / 2,
  );
  // Those that it selected before, and those that it selects now.
  const one = await client.get(packagePolicyKind, { name: 'one', namespace: 'team-3' });
  const moved = { ...one, spec: { ...one.spec, selector: { packages: ['p4'] } } };
  const both = await after(() => client.update(packagePolicyKind, moved));
  expect(both.sort()).toEqual(['team-3/apps.p4.v1', 'team-3/edge.p3.v1']);
  expect(await after(() => client.delete(packagePolicyKind, { name: 'one', namespace: 'team-3' }))).toEqual([
    'team-3/apps.p4.v1',
  ]);
});

test('a policy of a repository likewise, and all of its namespace while it is not known', async () => {
  let notify: (change: PolicyChange) => void = () => undefined;
  await start({
    onPolicyChange: (listener) => {
      notify = listener;
      return () => undefined;
    },
  });
  const policy = packagePolicyKind.complete({ metadata: { name: 'p' }, spec: { selector: { packages: ['p3'] } } });
  expect(await after(async () => notify({ namespace: 'team-1', policies: [policy] }))).toEqual(['team-1/edge.p3.v1']);
  expect(await after(async () => notify({ namespace: 'team-1', policies: undefined }))).toHaveLength(PENDING);
});

test('a freeze wakes those of its namespace, and one of the installation all', async () => {
  await start({ systemNamespace: 'platform' });
  const freeze = (namespace: string) =>
    client.create(freezeKind, { metadata: { name: 'stop', namespace }, spec: { reason: 'repair' } });
  expect(await after(() => freeze('team-2'))).toHaveLength(PENDING);
  expect(await after(() => freeze('sluice-system'))).toEqual([]);
  expect(await after(() => freeze('platform'))).toHaveLength(PENDING * NAMESPACES.length);
});

test('policies and freezes wake those of a repository of another namespace that shares packages', async () => {
  const isShared = ({ namespace, name }: ObjectKey) => namespace === 'team-4' && name === 'apps';
  await start({ sharing: (key) => (isShared(key) ? [{ namespace: 'team-5', name: 'apps' }] : []) });
  const here = (name: string) => ({ metadata: { name, namespace: 'team-4' } });
  const byPolicy = await after(() =>
    client.create(packagePolicyKind, { ...here('one'), spec: { selector: { packages: ['p3'] } } }),
  );
  expect(byPolicy.filter((id) => id.startsWith('team-4/'))).toEqual(['team-4/edge.p3.v1']);
  expect(byPolicy.filter((id) => id.startsWith('team-5/apps.'))).toHaveLength(PENDING / 2);
  expect(byPolicy).toHaveLength(1 + PENDING / 2);
  const byFreeze = await after(() => client.create(freezeKind, { ...here('stop'), spec: { reason: 'repair' } }));
  expect(byFreeze).toHaveLength(PENDING + PENDING / 2);
});

test('a repository wakes its own, and not those of a repository of that name elsewhere', async () => {
  await start();
  const apps = await client.get(repositoryKind, { name: 'apps', namespace: 'team-6' });
  const annotations = { 'sluice.dev/gates': 'warn' };
  const changed = { ...apps, metadata: { ...apps.metadata, annotations } };
  const found = await after(() => client.update(repositoryKind, changed));
  expect(found).toHaveLength(PENDING / 2);
  expect(found.every((id) => id.startsWith('team-6/apps.'))).toBe(true);
});
