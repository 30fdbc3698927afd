import type { SelectOptions } from '../resource/client/client.ts';
import { groupVersionKindOf, type KubernetesObject, keyOf, type ObjectKey } from '../resource/object/object.ts';
import type { Kind } from '../resource/schema/kind.ts';
import type { KindIdentity } from '../resource/schema/kind-identity.ts';
import type { Informer } from './informer.ts';
import type { InformerEvent } from './informer-store.ts';

/** The services that a source gets when its controller starts. */
export interface SourceContext<Request> {
  /** The shared informer of a kind and selection; it is started if it is not. */
  informer<T extends KubernetesObject>(kind: Kind<T>, selection?: SelectOptions): Informer<T>;
  /**
   * Ends the shared informers of a kind that is registered no longer; a later request gets a new one. With a selection, only the informer of that, unless
   * another source has a handler there.
   */
  release(kind: KindIdentity, selection?: SelectOptions): void;
  enqueue(request: Request): void;
  /** Moves a request that is queued before all others. */
  prioritize(request: Request): void;
  /**
   * Runs work that leads to requests. A failure is recorded and the work tried again after a growing pause until it
   * succeeds or the controller stops, so that no event is lost by it. The controller is not idle meanwhile.
   */
  track(work: (signal: AbortSignal) => Promise<void>): void;
}

/** A source of requests for a controller. */
export interface Source<Request> {
  /** Begins to enqueue; the returned function is called when the controller stops. */
  start(context: SourceContext<Request>): () => void;
}

/** The requests that follow from an event, or a promise of them. */
export type EventMapper<T extends KubernetesObject, Request> = (
  event: InformerEvent<T>,
) => Iterable<Request> | Promise<Iterable<Request>>;

export interface WatchSourceOptions<T extends KubernetesObject, Request> {
  readonly selection?: SelectOptions;
  /** Events for which it is false are passed over. */
  readonly predicate?: (event: InformerEvent<T>) => boolean;
  readonly map: EventMapper<T, Request>;
}

/** A source that follows the objects of a kind. */
export function watchKind<T extends KubernetesObject, Request = ObjectKey>(
  kind: Kind<T>,
  options: WatchSourceOptions<T, Request>,
): Source<Request> {
  return {
    start({ informer, enqueue, track }) {
      const { selection, predicate, map } = options;
      return informer(kind, selection).addHandler((event) => {
        if (predicate?.(event) === false) return;
        const requests = map(event);
        if (!(requests instanceof Promise)) {
          for (const request of requests) enqueue(request);
          return;
        }
        let first: Promise<Iterable<Request>> | undefined = requests;
        track(async () => {
          const mapping = first ?? Promise.resolve(map(event));
          first = undefined;
          for (const request of await mapping) enqueue(request);
        });
      });
    },
  };
}

/** A source for triggers from outside the objects, such as a hook call or a request to sync now. */
export function triggerSource<Request>(
  subscribe: (enqueue: (request: Request) => void) => () => void,
): Source<Request> {
  return { start: ({ enqueue }) => subscribe(enqueue) };
}

/** Maps an event to the object itself. */
export function toObject<T extends KubernetesObject>(event: InformerEvent<T>): ObjectKey[] {
  return [keyOf(event.object)];
}

/**
 * Maps an event to the owners of a kind, by the object's ownerReferences, the former ones too. With `controllerOnly` to
 * the one that controls it.
 */
export function toOwner<T extends KubernetesObject>(
  ownerKind: Pick<KindIdentity, 'group' | 'kind' | 'namespaced'>,
  options: { readonly controllerOnly?: boolean } = {},
): (event: InformerEvent<T>) => ObjectKey[] {
  return (event) => {
    const owners = new Map<string, ObjectKey>();
    for (const object of event.type === 'update' ? [event.old, event.object] : [event.object])
      for (const reference of object.metadata.ownerReferences ?? []) {
        const { group, kind } = groupVersionKindOf(reference);
        if (group !== ownerKind.group || kind !== ownerKind.kind) continue;
        if (options.controllerOnly === true && reference.controller !== true) continue;
        const { namespace } = object.metadata;
        owners.set(
          reference.name,
          ownerKind.namespaced && namespace !== undefined
            ? { namespace, name: reference.name }
            : { name: reference.name },
        );
      }
    return [...owners.values()];
  };
}
