import { beforeEach, expect, test } from 'vitest';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { RegistryClient } from '../../../resource/client/registry-client.ts';
import { podKind } from '../../../resource/kinds/core/pod.ts';
import type { KubernetesObject, ObjectKey } from '../../../resource/object/object.ts';
import type { MergePatch } from '../../../resource/patch/merge-patch.ts';
import type { Kind } from '../../../resource/schema/kind.ts';
import { MemoryStorage } from '../../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../../resource/storage/registry.ts';
import { EventLog } from '../../../resource/watch/event-log.ts';
import { LeaderLabel } from './leader-label.ts';

const NAMESPACE = 'sluice-system';

/** The client of a process, whose patches fail or wait while a test says so. */
class FaultyClient extends RegistryClient {
  readonly patched: string[] = [];
  failure: SluiceError | undefined;
  gate: Promise<void> | undefined;

  override async patch<T extends KubernetesObject>(kind: Kind<T>, key: ObjectKey, patch: MergePatch) {
    this.patched.push(key.name);
    await this.gate;
    if (this.failure !== undefined) throw this.failure;
    return super.patch(kind, key, patch);
  }
}

let clock: ManualClock;
let own: FaultyClient;
let client: RegistryClient;
let warnings: string[];
let leads: boolean;

beforeEach(async () => {
  clock = new ManualClock();
  const registry = new Registry();
  registry.register(new MemoryStorage(podKind, { log: new EventLog({ clock }), clock }) as never);
  own = new FaultyClient(registry, { name: 'sluice' }, 'controller');
  client = new RegistryClient(registry, { name: 'test' }, 'controller');
  warnings = [];
  leads = true;
  for (const name of ['a', 'b']) await create(name);
});

async function create(name: string, labels: Record<string, string> = {}, namespace = NAMESPACE): Promise<void> {
  const metadata = { namespace, name, labels: { app: 'sluice', ...labels } };
  await client.create(podKind, { metadata, spec: { containers: [] } });
}

async function setLabel(name: string, value: string | null): Promise<void> {
  await client.patch(podKind, { namespace: NAMESPACE, name }, { metadata: { labels: { 'sluice.dev/leader': value } } });
}

async function labelled(): Promise<string[]> {
  const { items } = await client.list(podKind, { labelSelector: 'sluice.dev/leader' });
  return items.map(({ metadata: { namespace, name } }) => (namespace === NAMESPACE ? name : `${namespace}/${name}`));
}

function labelOf(name: string): LeaderLabel {
  const warn = (_: string, message: string) => warnings.push(message);
  const pod = { namespace: NAMESPACE, name };
  return new LeaderLabel({ client: own, clock, pod, isLeader: () => leads, warn });
}

test('a restarted container removes the label of the leader that it was, and then leaves the pod alone', async () => {
  await setLabel('a', 'true');
  own.patched.length = 0;
  const label = labelOf('a');
  label.start();
  await clock.advanceAsync(60_000);
  expect(await labelled()).toEqual([]);
  expect(own.patched).toEqual(['a']);
  await label.stop();
  expect(own.patched).toEqual(['a']);
});

test('a leader has the label alone in its namespace, and keeps it so while it leads', async () => {
  await setLabel('b', 'true');
  await create('elsewhere', { 'sluice.dev/leader': 'true' }, 'other');
  const label = labelOf('a');
  label.start();
  await clock.advanceAsync(0);
  label.lead();
  await clock.advanceAsync(0);
  expect(await labelled()).toEqual(['other/elsewhere', 'a']);

  await setLabel('a', null);
  await setLabel('b', '');
  await clock.advanceAsync(10_000);
  expect(await labelled()).toEqual(['other/elsewhere', 'a']);
  // Nothing is written while all is as it should be.
  own.patched.length = 0;
  await clock.advanceAsync(60_000);
  expect(own.patched).toEqual([]);
  await label.stop();
  expect(await labelled()).toEqual(['other/elsewhere']);
  expect(warnings).toEqual([]);
});

test('a replica that has lost the Lease changes no label any more', async () => {
  const label = labelOf('a');
  label.start();
  label.lead();
  await clock.advanceAsync(0);
  leads = false;
  await setLabel('a', null);
  await setLabel('b', 'true');
  await clock.advanceAsync(60_000);
  expect(await labelled()).toEqual(['b']);
});

test.each([
  new SluiceError('NotFound', 'pods "a" not found'),
  new SluiceError('Refused', 'pods "a" is forbidden'),
  new SluiceError('Unavailable', 'the server does not respond'),
])('a failure is reported once with the next step, and the label is set when it has passed: %s', async (failure) => {
  const label = labelOf('a');
  own.failure = failure;
  label.start();
  label.lead();
  await clock.advanceAsync(60_000);
  expect(warnings).toEqual([expect.stringContaining(failure.message)]);
  expect(warnings[0]).toContain('check that POD_NAME and POD_NAMESPACE name this pod');
  own.failure = undefined;
  await clock.advanceAsync(10_000);
  expect(await labelled()).toEqual(['a']);
  await label.stop();
});

test('a server that does not respond delays the end by a second at most', async () => {
  const label = labelOf('a');
  label.start();
  label.lead();
  await clock.advanceAsync(0);
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  own.gate = gate;
  const stopped = label.stop().then(() => 'stopped');
  await clock.advanceAsync(999);
  expect(await Promise.race([stopped, 'waiting'])).toBe('waiting');
  await clock.advanceAsync(1);
  expect(await Promise.race([stopped, 'waiting'])).toBe('stopped');
  open();
});

test('a pod that is gone while its process stops is no problem', async () => {
  const label = labelOf('a');
  label.start();
  label.lead();
  await clock.advanceAsync(0);
  own.failure = new SluiceError('NotFound', 'pods "a" not found');
  await label.stop();
  expect(warnings).toEqual([]);
});
