import type { Clock } from '../../foundation/time/clock.ts';
import type { HttpClient } from '../../kubernetes/http-client.ts';
import { ClusterStorage } from '../../kubernetes/storage/cluster-storage.ts';
import type { Client } from '../../resource/client/client.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { type Event, eventKind } from '../../resource/kinds/core/event.ts';
import { OBJECT_KINDS } from '../../resource/kinds/index.ts';
import type { ObjectKey, Stored } from '../../resource/object/object.ts';
import type { Actor, RequestContext } from '../../resource/object/request-context.ts';
import type { MergePatch } from '../../resource/patch/merge-patch.ts';
import { Registry } from '../../resource/storage/registry.ts';
import type { Storage } from '../../resource/storage/storage.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import type { SessionObjects } from '../data/session-objects.ts';

export interface ClusterObjectsOptions {
  readonly client: HttpClient;
  readonly clock: Clock;
  /** The version from which the log of the package kinds continues. */
  readonly startVersion: bigint;
  /** Called with each Event that this process has recorded. */
  readonly onEvent: (event: Stored<Event>) => void;
}

/** The objects of a cluster, which its kube-apiserver keeps, and an event log of the package kinds alone. */
export class ClusterObjects implements SessionObjects {
  readonly log: EventLog;
  readonly #storages: readonly Storage[];

  constructor({ client, clock, startVersion, onEvent }: ClusterObjectsOptions) {
    this.log = new EventLog({ clock, start: startVersion });
    this.#storages = OBJECT_KINDS.map((kind) =>
      kind === eventKind
        ? (new NotedEvents(client, onEvent) as unknown as Storage)
        : (new ClusterStorage(kind, client) as Storage),
    );
  }

  storages(): Storage[] {
    return [...this.#storages];
  }

  client(actor: Actor): Client {
    const registry = new Registry();
    for (const storage of this.#storages) registry.register(storage);
    return new RegistryClient(registry, actor, 'controller');
  }

  async close(): Promise<void> {
    this.log.close();
  }
}

/** The Events of a cluster, which are too many to be watched: a notification about those that this process writes. */
class NotedEvents extends ClusterStorage<Event> {
  readonly #onEvent: (event: Stored<Event>) => void;

  constructor(client: HttpClient, onEvent: (event: Stored<Event>) => void) {
    super(eventKind, client);
    this.#onEvent = onEvent;
  }

  override async create(context: RequestContext, object: Event): Promise<Stored<Event>> {
    const event = await super.create(context, object);
    this.#onEvent(event);
    return event;
  }

  override async patch(
    context: RequestContext,
    key: ObjectKey,
    patch: MergePatch,
    subResource?: string,
  ): Promise<Stored<Event>> {
    const event = await super.patch(context, key, patch, subResource);
    this.#onEvent(event);
    return event;
  }
}
