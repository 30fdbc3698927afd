import { SluiceError } from '../foundation/sluice-error.ts';
import { ManualClock, settle } from '../foundation/time/manual-clock.ts';
import { RegistryClient } from '../resource/client/registry-client.ts';
import type { KubernetesObject } from '../resource/object/object.ts';
import type { RequestContext } from '../resource/object/request-context.ts';
import { widgetKind } from '../resource/schema/testing.ts';
import { MemoryStorage } from '../resource/storage/memory/memory-storage.ts';
import { Registry } from '../resource/storage/registry.ts';
import type { ListResult, Selection, WatchEvent, WatchOptions } from '../resource/storage/storage.ts';
import { EventLog } from '../resource/watch/event-log.ts';
import type { ReconcileRecord } from './controller.ts';
import { Manager, type ManagerOptions } from './manager.ts';
import { toObject, watchKind } from './source.ts';

/** A fault of a list or a watch. `silent` delivers nothing until the abort, `deaf` ignores even the abort. */
export type Fault = 'error' | 'expire' | 'end' | 'silent' | 'deaf';

/** A storage whose lists and watches fail as `nextFault` returns; undefined is no fault. Writes always work. */
export class FaultyStorage<T extends KubernetesObject> extends MemoryStorage<T> {
  nextFault: () => Fault | undefined = () => undefined;

  override async list(context: RequestContext, selection?: Selection): Promise<ListResult<T>> {
    const fault = this.nextFault();
    if (fault === 'error' || fault === 'expire') throw new SluiceError('Unavailable', 'injected');
    return super.list(context, selection);
  }

  override watch(context: RequestContext, options: WatchOptions): AsyncIterable<WatchEvent<T>> {
    return this.#faulty(super.watch(context, options), options.signal);
  }

  async *#faulty(events: AsyncIterable<WatchEvent<T>>, signal: AbortSignal): AsyncGenerator<WatchEvent<T>> {
    const strike = async (): Promise<boolean> => {
      const fault = this.nextFault();
      if (fault === undefined) return false;
      if (fault === 'error') throw new SluiceError('Unavailable', 'injected');
      if (fault === 'expire') throw new SluiceError('Expired', 'injected');
      if (fault === 'deaf') await new Promise(() => undefined);
      if (fault === 'silent' && !signal.aborted)
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      return true;
    };
    if (await strike()) return;
    for await (const event of events) {
      yield event;
      if (await strike()) return;
    }
  }
}

/** A manual clock, a log, a faulty storage of widgets and a client on them. */
export function testBench(options: { readonly window?: number } = {}) {
  const clock = new ManualClock();
  const log = new EventLog({ clock, ...options });
  const widgets = new FaultyStorage(widgetKind, { clock, log });
  const registry = new Registry();
  registry.register(widgets);
  const client = new RegistryClient(registry, { name: 'test' }, 'controller');
  return { clock, log, widgets, registry, client };
}

/** A test bench with a manager that has no controllers yet, and what it reports. */
export function managerBench(options: Partial<ManagerOptions> = {}) {
  const bench = testBench();
  const records: ReconcileRecord[] = [];
  const errors: string[] = [];
  const manager = new Manager({
    client: bench.client,
    clock: bench.clock,
    random: () => 0.5,
    onReconcile: (record) => records.push(record),
    onError: (error, where) => errors.push(`${where}: ${String(error)}`),
    ...options,
  });
  const create = (name: string, size = 1) => bench.client.create(widgetKind, { metadata: { name }, spec: { size } });
  return { ...bench, manager, records, errors, create };
}

/** A source that enqueues every widget that changes. */
export const widgetSource = watchKind(widgetKind, { map: toObject });

/** True once the promise has settled, tested after all ready callbacks have run. */
export async function settled(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  promise.then(
    () => (done = true),
    () => (done = true),
  );
  for (let round = 0; round < 5; round += 1) await settle();
  return done;
}
