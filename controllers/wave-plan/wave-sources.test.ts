import { afterEach, beforeEach, expect, test } from 'vitest';
import { Informer } from '../../src/controller/informer.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import type { PolicyChange } from '../../src/package/store/policies/concerned-revisions.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { freezeKind } from '../../src/resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { analysisRunKind } from '../../src/resource/kinds/sluice/wave/analysis-run.ts';
import { wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { waveTargetKind } from '../../src/resource/kinds/sluice/wave/wave-target.ts';
import type { KubernetesObject, ObjectKey } from '../../src/resource/object/object.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import { MemoryStorage } from '../../src/resource/storage/memory/memory-storage.ts';
import { Registry } from '../../src/resource/storage/registry.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';
import { waveSources } from './wave-sources.ts';

const KINDS = [
  ...[wavePlanKind, waveTargetKind, analysisRunKind, packageRevisionKind],
  ...[deliveryTargetKind, packagePolicyKind, freezeKind],
];

let client: RegistryClient;
let informers: Map<string, Informer<never>>;
let woken: string[];
let tracked: Promise<unknown>[];
let ends: (() => unknown)[];
/** Those of policies that are read from repositories. */
let listeners: Set<(change: PolicyChange) => void>;

beforeEach(async () => {
  const log = new EventLog({ clock: systemClock });
  const registry = new Registry();
  for (const kind of KINDS) registry.register(new MemoryStorage(kind as never, { clock: systemClock, log }));
  client = new RegistryClient(registry, { name: 'anna' }, 'cli');
  informers = new Map();
  woken = [];
  tracked = [];
  for (const [namespace, names] of [
    ['team-1', ['web', 'db']],
    ['team-2', ['web']],
  ] as const)
    for (const name of names)
      await client.create(wavePlanKind, {
        metadata: { name, namespace },
        spec: { waves: [{ name: 'all', percent: 100 }] },
      });
  const informer = (kind: Kind) => {
    const known = informers.get(kind.kind) ?? new Informer<KubernetesObject>({ client, kind, clock: systemClock });
    informers.set(kind.kind, known as never);
    known.start();
    return known as never;
  };
  const { signal } = new AbortController();
  const track = (task: (signal: AbortSignal) => Promise<unknown>) => void tracked.push(task(signal));
  const enqueue = ({ namespace, name }: ObjectKey) => void woken.push(`${namespace}/${name}`);
  const context = { informer, enqueue, prioritize: enqueue, track, release: () => undefined };
  listeners = new Set();
  const onPolicyChange = (listener: (change: PolicyChange) => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  const sources = waveSources(systemClock, { quietMs: 0, systemNamespace: 'platform', onPolicyChange });
  ends = sources.map((source) => source.start(context as never));
  for (const one of informers.values()) await one.whenSynced();
});
afterEach(async () => {
  for (const end of ends) end();
  for (const informer of informers.values()) await informer.stop();
});

/** The plans that wake up once something is done. */
async function after(act: () => Promise<unknown>): Promise<string[]> {
  await Promise.all(tracked);
  woken.length = 0;
  await act();
  await Promise.all([...informers.values()].map((informer) => informer.refresh()));
  await Promise.all(tracked);
  return woken.toSorted();
}

test('a freeze wakes the plans of its namespace when it begins, changes and ends, and one of the installation all', async () => {
  const key = (namespace: string) => ({ name: 'stop', namespace });
  const freeze = (namespace: string) =>
    client.create(freezeKind, { metadata: key(namespace), spec: { reason: 'repair' } });
  expect(await after(() => freeze('team-1'))).toEqual(['team-1/db', 'team-1/web']);
  const until = { spec: { until: '2030-01-01T00:00:00Z' } };
  expect(await after(() => client.patch(freezeKind, key('team-1'), until))).toEqual(['team-1/db', 'team-1/web']);
  expect(await after(() => client.delete(freezeKind, key('team-1')))).toEqual(['team-1/db', 'team-1/web']);
  expect(await after(() => freeze('platform'))).toEqual(['team-1/db', 'team-1/web', 'team-2/web']);
  expect(await after(() => freeze('sluice-system'))).toEqual([]);
});

test('a policy and a revision wake the plans of their namespace, each once', async () => {
  const metadata = { name: 'p', namespace: 'team-2' };
  expect(await after(() => client.create(packagePolicyKind, { metadata, spec: {} }))).toEqual(['team-2/web']);
  const propose = (name: string, lifecycle: 'Proposed' | 'Published') =>
    client.create(packageRevisionKind, {
      metadata: { name: `apps.${name}.v1`, namespace: 'team-1' },
      spec: { repository: 'apps', packageName: name, workspaceName: 'v1', lifecycle },
    });
  const both = await after(() => Promise.all([propose('a', 'Proposed'), propose('b', 'Proposed')]));
  expect(both).toEqual(['team-1/db', 'team-1/web']);
});

test('plans that are over wake only when they change themselves', async () => {
  const key = { name: 'web', namespace: 'team-1' };
  const plan = await client.get(wavePlanKind, key);
  await client.updateStatus(wavePlanKind, { ...plan, status: { ...plan.status, phase: 'Completed' } as never });
  await Promise.all([...informers.values()].map((informer) => informer.refresh()));
  const freeze = { metadata: { name: 'stop', namespace: 'team-1' }, spec: { reason: 'repair' } };
  expect(await after(() => client.create(freezeKind, freeze))).toEqual(['team-1/db']);
  expect(await after(() => client.patch(wavePlanKind, key, { spec: { rollback: true } }))).toEqual(['team-1/web']);
});

test('a policy that is read from a repository wakes the plans of its namespace, known or not', async () => {
  const notify = async (change: PolicyChange) => {
    for (const listener of listeners) listener(change);
  };
  const policy = packagePolicyKind.complete({ metadata: { name: 'p' }, spec: {} });
  const both = ['team-1/db', 'team-1/web'];
  expect(await after(() => notify({ namespace: 'team-1', policies: [policy] }))).toEqual(both);
  expect(await after(() => notify({ namespace: 'team-2', policies: undefined }))).toEqual(['team-2/web']);
  for (const end of ends.splice(0)) end();
  expect(listeners.size).toBe(0);
});
