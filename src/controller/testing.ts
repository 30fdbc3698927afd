import { ManualClock } from '../foundation/manual-clock.ts';
import { SluiceError } from '../foundation/sluice-error.ts';
import { EventLog } from '../resource/event-log.ts';
import { MemoryStorage } from '../resource/memory-storage.ts';
import type { KubernetesObject } from '../resource/object.ts';
import { Registry } from '../resource/registry.ts';
import { RegistryClient } from '../resource/registry-client.ts';
import type { RequestContext } from '../resource/request-context.ts';
import type { ListResult, Selection, WatchEvent, WatchOptions } from '../resource/storage.ts';
import { widgetKind } from '../resource/testing.ts';

/** What goes wrong with a list or a watch. `silent` heeds the abort, `deaf` does not even do that. */
export type Fault = 'error' | 'expire' | 'end' | 'silent' | 'deaf';

/** A storage whose lists and watches fail as `nextFault` says; undefined is no fault. Writes always work. */
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
