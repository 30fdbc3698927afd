import { EventRecorder } from '../src/controller/event-recorder.ts';
import { Manager } from '../src/controller/manager.ts';
import { type Clock, systemClock } from '../src/foundation/time/clock.ts';
import { RegistryClient } from '../src/resource/client/registry-client.ts';
import { eventKind } from '../src/resource/kinds/core/event.ts';
import { OBJECT_KINDS } from '../src/resource/kinds/index.ts';
import type { OwnerReference, Stored } from '../src/resource/object/object.ts';
import type { Kind } from '../src/resource/schema/kind.ts';
import { widgetKind } from '../src/resource/schema/testing.ts';
import { MemoryStorage } from '../src/resource/storage/memory/memory-storage.ts';
import { Registry } from '../src/resource/storage/registry.ts';
import { EventLog } from '../src/resource/watch/event-log.ts';

/** A registry of all object kinds and widgets in memory, and a manager that is not started. */
export function objectBench(clock: Clock = systemClock) {
  const log = new EventLog({ clock });
  const registry = new Registry();
  const memory = <K extends Kind>(kind: K) => new MemoryStorage(kind as unknown as Kind, { clock, log });
  for (const kind of OBJECT_KINDS) registry.register(memory(kind));
  registry.register(memory(widgetKind as unknown as Kind));
  const client = new RegistryClient(registry, { name: 'anna' }, 'cli');
  const errors: unknown[] = [];
  const manager = new Manager({
    client,
    clock,
    onError: (error) => errors.push(error),
    onReconcile: ({ outcome, error }) => (outcome === 'error' ? errors.push(error) : undefined),
  });
  const recorder = new EventRecorder({ client, clock, component: 'test', onError: (error) => errors.push(error) });
  return {
    ...{ clock, log, registry, client, manager, recorder, errors },
    /** A storage in memory on the same log. */
    memory,
    /** `reason: message` of the events on objects of a name. */
    async events(name: string): Promise<string[]> {
      await recorder.flush();
      const { items } = await client.list(eventKind, { fieldSelector: `involvedObject.name=${name}` });
      return items.map((event) => `${event.reason}: ${event.message}`);
    },
    [Symbol.asyncDispose]: () => manager.stop(0),
  };
}

/** A reference to an owner, which blocks its deletion by default. */
export function refer({ apiVersion, kind, metadata }: Stored, blockOwnerDeletion = true): OwnerReference {
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid, blockOwnerDeletion };
}
