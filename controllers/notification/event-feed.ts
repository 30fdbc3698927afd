import type { Informer } from '../../src/controller/informer.ts';
import type { Source } from '../../src/controller/source.ts';
import { type Event, eventKind } from '../../src/resource/kinds/core/event.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { type Notification, notificationKind } from '../../src/resource/kinds/sluice/notification.ts';
import { keyOf, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { matchingRules } from './match-event.ts';

/** A cluster has many other events, which are not watched. */
const API_VERSIONS: readonly string[] = [
  ...new Set([packageRevisionKind.apiVersion, repositoryKind.apiVersion, deliveryTargetKind.apiVersion]),
];

/** The stored events about objects of Sluice, which are the queue of every Notification. */
export class EventFeed {
  #events: readonly Informer<Event>[] = [];

  /** Enqueues a Notification that changes, and those that an event concerns. */
  readonly source: Source<ObjectKey> = {
    start: ({ informer, enqueue }) => {
      const notifications = informer(notificationKind);
      this.#events = API_VERSIONS.map((version) =>
        informer(eventKind, { fieldSelector: `involvedObject.apiVersion=${version}` }),
      );
      const ends = this.#events.map((events) =>
        events.addHandler(({ type, object }) => {
          if (type === 'delete') return;
          for (const notification of notifications.inNamespace(object.metadata.namespace ?? ''))
            if (matchingRules(notification, object).length > 0) enqueue(keyOf(notification));
        }),
      );
      ends.push(
        notifications.addHandler((event) => {
          if (event.type !== 'update' || hasChanged(event.old, event.object)) enqueue(keyOf(event.object));
        }),
      );
      return () => {
        for (const end of ends) end();
      };
    },
  };

  inNamespace(namespace: string): Stored<Event>[] {
    return this.#events.flatMap((events) => events.inNamespace(namespace));
  }
}

/** Not for its status, which only this controller writes. */
function hasChanged(old: Stored<Notification>, next: Stored<Notification>): boolean {
  return old.metadata.uid !== next.metadata.uid || old.metadata.generation !== next.metadata.generation;
}
