import { afterEach, beforeEach, expect, test } from 'vitest';
import { Informer } from '../../src/controller/informer.ts';
import { ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import { wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { KubernetesObject, ObjectKey } from '../../src/resource/object/object.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import { MemoryStorage } from '../../src/resource/storage/memory/memory-storage.ts';
import { Registry } from '../../src/resource/storage/registry.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';
import { heldRevisions } from '../wave-plan/held-revisions.ts';
import { SlotWaiters } from './slot-waiters.ts';

const NAMESPACES = Array.from({ length: 10 }, (_, at) => `team-${at}`);
const TARGET = { selector: {}, git: { repo: '/site.git' } };

let clock: ManualClock;
let client: RegistryClient;
let informers: Map<string, Informer<never>>;
let woken: ObjectKey[];
let context: never;

beforeEach(() => {
  clock = new ManualClock();
  const log = new EventLog({ clock });
  const registry = new Registry();
  for (const kind of [packageRevisionKind, repositoryKind, packageDeliveryKind, deliveryTargetKind, wavePlanKind])
    registry.register(new MemoryStorage(kind as never, { clock, log }));
  client = new RegistryClient(registry, { name: 'anna' }, 'cli');
  informers = new Map();
  woken = [];
  const informer = (kind: Kind) => {
    const known = informers.get(kind.kind) ?? new Informer<KubernetesObject>({ client, kind, clock });
    informers.set(kind.kind, known as never);
    known.start();
    return known as never;
  };
  const track = (work: (signal: AbortSignal) => Promise<void>) => void work(new AbortController().signal);
  context = { informer, enqueue: (key: ObjectKey) => void woken.push(key), track } as never;
});
afterEach(async () => {
  for (const informer of informers.values()) await informer.stop();
});

async function after(act: () => Promise<unknown>): Promise<ObjectKey[]> {
  woken.length = 0;
  await act();
  for (const informer of informers.values()) await informer.refresh();
  clock.advance(200);
  await settle();
  return [...woken];
}

test('a delivery wakes those that wait for a policy with a free place, and counts once for each policy', async () => {
  const waiters = new SlotWaiters();
  const counted: string[] = [];
  const free = new Set<string>();
  const end = waiters
    .source(clock, (key, policy) => {
      counted.push(`${key.namespace} ${policy}`);
      return free.has(policy);
    })
    .start(context);
  // 1,000 revisions in 10 namespaces: half of each wait for one policy, half for another.
  for (const namespace of NAMESPACES)
    for (let at = 0; at < 100; at += 1) waiters.note({ namespace, name: `apps.p${at}.v1` }, [at % 2 === 0 ? 'a' : 'b']);
  for (const informer of informers.values()) await informer.whenSynced();
  const deliver = (name: string, namespace = 'team-1') =>
    client.create(deliveryTargetKind, { metadata: { name, namespace }, spec: TARGET });
  expect(await after(() => deliver('edge'))).toEqual([]);
  expect(counted).toEqual(['team-1 a', 'team-1 b']);
  free.add('b');
  counted.length = 0;
  const found = await after(async () => {
    for (let at = 0; at < 20; at += 1) await deliver(`site-${at}`);
  });
  expect(found).toHaveLength(50);
  expect(found.every(({ namespace }) => namespace === 'team-1')).toBe(true);
  expect(counted).toEqual(['team-1 a', 'team-1 b']);
  // Those that wait no longer are forgotten.
  for (const { namespace, name } of found)
    waiters.note({ ...(namespace === undefined ? {} : { namespace }), name }, []);
  expect(await after(() => deliver('last'))).toEqual([]);
  expect(await after(() => deliver('none', 'elsewhere'))).toEqual([]);
  end();
});

test('a plan that begins, selects others or ends wakes the proposed revisions that it selects, and no others', async () => {
  for (const namespace of NAMESPACES)
    for (let at = 0; at < 100; at += 1)
      await client.create(packageRevisionKind, {
        metadata: { name: `apps.p${at}.v1`, namespace },
        spec: {
          ...{ repository: 'apps', packageName: `p${at}`, workspaceName: 'v1' },
          lifecycle: at % 2 === 0 ? 'Proposed' : 'Draft',
        },
      });
  const find = (id: string) => {
    const [repository = '', name = '', workspace = ''] = (id.split('/')[1] ?? '').split('.');
    return { key: { repository, package: name, workspace } } as never;
  };
  const end = heldRevisions({ find }).start(context);
  const plan = (name: string, selector: object) =>
    client.create(wavePlanKind, {
      metadata: { name, namespace: 'team-7' },
      spec: { selector, waves: [{ name: 'all', percent: 100 }] },
    });
  const names = (keys: readonly ObjectKey[]) => keys.map(({ namespace, name }) => `${namespace}/${name}`).sort();
  const begun = await after(() => plan('few', { packages: ['p2', 'p3', 'p4'] }));
  expect(names(begun)).toEqual(['team-7/apps.p2.v1', 'team-7/apps.p4.v1']);
  const patch = (spec: object) => client.patch(wavePlanKind, { name: 'few', namespace: 'team-7' }, { spec });
  // Each approval of a wave would wake a whole fleet.
  expect(await after(() => patch({ promotePast: 'all' }))).toEqual([]);
  const other = await after(() => patch({ selector: { packages: ['p2', 'p4', 'p6'] } }));
  expect(new Set(names(other))).toEqual(new Set(['p2', 'p4', 'p6'].map((one) => `team-7/apps.${one}.v1`)));
  await after(() => patch({ selector: { packages: ['p2', 'p4'] } }));
  const few = await after(() => client.delete(wavePlanKind, { name: 'few', namespace: 'team-7' }));
  expect(names(few)).toEqual(['team-7/apps.p2.v1', 'team-7/apps.p4.v1']);
  end();
});
