import type { InformerEvent } from '../../src/controller/informer-store.ts';
import type { Source, SourceContext } from '../../src/controller/source.ts';
import { eventKind } from '../../src/resource/kinds/core/event.ts';
import { eventV1Kind } from '../../src/resource/kinds/events/event-v1.ts';
import {
  type KubernetesObject,
  keyOf,
  keyText,
  type ObjectKey,
  type Stored,
} from '../../src/resource/object/object.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import type { Registry } from '../../src/resource/storage/registry.ts';
import type { Verb } from '../../src/resource/storage/storage.ts';
import { awaitsDependents, type OwnerGraph, orphansDependents, ownersOf } from './owner-graph.ts';

/** One object of any kind. */
export interface ObjectIdentity extends ObjectKey {
  readonly apiVersion: string;
  readonly kind: string;
  readonly uid: string;
}

export function identityOf(object: Stored): ObjectIdentity {
  const { apiVersion, kind, metadata } = object;
  return { apiVersion, kind, ...keyOf(object), uid: metadata.uid };
}

export function identityText({ apiVersion, kind, uid, ...key }: ObjectIdentity): string {
  return `${kind}.${apiVersion} ${keyText(key)} ${uid}`;
}

const NEEDED_VERBS: readonly Verb[] = ['delete', 'list', 'watch'];

/** Events are numerous, own no objects and expire by themselves. */
const EVENT_KINDS: readonly Pick<Kind, 'group' | 'kind'>[] = [eventKind, eventV1Kind];

/** Follows the objects of all kinds that can be deleted, as kinds are added and removed, and keeps the graph up to date. */
export function ownedObjects(
  registry: Pick<Registry, 'storages' | 'kindOf' | 'onChange'>,
  graph: OwnerGraph,
): Source<ObjectIdentity> {
  return {
    start({ informer, release, enqueue }: SourceContext<ObjectIdentity>) {
      const followed = new Map<string, { readonly kind: Kind; readonly end: () => void }>();
      const handle = (event: InformerEvent<KubernetesObject>) => {
        if (event.type === 'delete') graph.remove(event.object);
        else graph.put(event.object);
        for (const request of requestsOf(event, graph)) enqueue(request);
      };
      const update = () => {
        const wanted = followedKinds(registry);
        for (const [id, { kind, end }] of followed) {
          if (wanted.has(id)) continue;
          end();
          followed.delete(id);
          if (registry.kindOf(kind) === undefined) release(kind);
          graph.forget(kind);
        }
        for (const [id, kind] of wanted)
          if (!followed.has(id)) followed.set(id, { kind, end: informer(kind).addHandler(handle) });
      };
      let scheduled = false;
      const unsubscribe = registry.onChange(() => {
        if (scheduled) return;
        scheduled = true;
        // A kind with a new definition is removed and added within one turn of the event loop, and counts as served all the time. Deletions before
        // the removal of a kind are processed first.
        setImmediate(() => {
          scheduled = false;
          if (!ended) update();
        });
      });
      let ended = false;
      update();
      return () => {
        ended = true;
        unsubscribe();
        for (const { end } of followed.values()) end();
      };
    },
  };
}

/** By id; for a kind with several versions the first one, since all versions show the same objects. */
function followedKinds(registry: Pick<Registry, 'storages'>): Map<string, Kind> {
  const kinds = new Map<string, Kind>();
  const seen = new Set<string>();
  for (const { kind, verbs } of registry.storages()) {
    const resource = `${kind.plural}.${kind.group}`;
    if (seen.has(resource) || EVENT_KINDS.some((event) => event.group === kind.group && event.kind === kind.kind))
      continue;
    if (verbs !== undefined && !NEEDED_VERBS.every((verb) => verbs.includes(verb))) continue;
    seen.add(resource);
    kinds.set(`${kind.apiVersion} ${kind.kind}`, kind);
  }
  return kinds;
}

/** Objects whose required action may have changed. */
function* requestsOf(event: InformerEvent<KubernetesObject>, graph: OwnerGraph): Generator<ObjectIdentity> {
  const { type, object } = event;
  const before = type === 'update' ? event.old : undefined;
  if (ownersOf(object).length > 0 || waitsForFinalizers(object)) yield identityOf(object);
  const begins = awaitsDependents(object) && (before === undefined || !awaitsDependents(before));
  if (type === 'delete' || begins)
    for (const dependent of graph.dependents(object.metadata.uid)) yield identityOf(dependent);
  for (const { uid } of [...ownersOf(object), ...(before === undefined ? [] : ownersOf(before))]) {
    const owner = graph.get(uid);
    if (owner !== undefined && waitsForFinalizers(owner)) yield identityOf(owner);
  }
}

function waitsForFinalizers(object: KubernetesObject): boolean {
  return awaitsDependents(object) || orphansDependents(object);
}
