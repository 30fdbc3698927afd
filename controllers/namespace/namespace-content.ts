import { mapLimited } from '../../src/foundation/concurrency/map-limited.ts';
import { isSluiceError, messageOf } from '../../src/foundation/sluice-error.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { eventV1Kind } from '../../src/resource/kinds/events/event-v1.ts';
import { PACKAGE_KINDS } from '../../src/resource/kinds/index.ts';
import { keyOf, type Stored } from '../../src/resource/object/object.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import { isDeletionDelayed, resourceName } from '../../src/resource/storage/memory/object-rules.ts';
import type { Registry } from '../../src/resource/storage/registry.ts';
import type { Verb } from '../../src/resource/storage/storage.ts';

/** The result of one pass over the objects of a namespace. */
export interface ContentReport {
  /** Number of objects at the beginning. */
  readonly found: number;
  /** Number of remaining objects, by plural and group of their kind. */
  readonly remaining: ReadonlyMap<string, number>;
  /** Number of remaining objects that wait for each finalizer. */
  readonly finalizers: ReadonlyMap<string, number>;
  /** Reasons why objects could not be deleted. */
  readonly failures: readonly string[];
}

/** Deletions in flight at once, so that they share the syncs of the storage. */
const MAX_CONCURRENT_DELETIONS = 64;
/** Failures that a message names. */
const MAX_FAILURES = 10;
const NEEDED_VERBS: readonly Verb[] = ['delete', 'list'];

/** Requests the deletion of all objects in a namespace, of every kind, and reports which remain. */
export async function removeContent(
  client: Client,
  registry: Pick<Registry, 'storages'>,
  namespace: string,
): Promise<ContentReport> {
  let found = 0;
  const remaining = new Map<string, number>();
  const finalizers = new Map<string, number>();
  const failures: string[] = [];
  for (const kind of contentKinds(registry)) {
    const { items } = await client.list(kind, { namespace });
    found += items.length;
    await mapLimited(items, MAX_CONCURRENT_DELETIONS, async (object) => {
      const left = await remove(client, kind, object, failures);
      if (left === undefined) return;
      count(remaining, resourceName(kind));
      for (const finalizer of left.metadata.finalizers ?? []) count(finalizers, finalizer);
    });
  }
  return { found, remaining, finalizers, failures };
}

/** Package revisions are a view of Git, and disappear with their Repository; events.k8s.io is a view of the core events. */
const VIEWS: readonly Pick<Kind, 'group' | 'kind'>[] = [...PACKAGE_KINDS, eventV1Kind];

/** Returns the kinds whose objects are stored separately. */
function contentKinds(registry: Pick<Registry, 'storages'>): Kind[] {
  const kinds = new Map<string, Kind>();
  for (const { kind, verbs } of registry.storages()) {
    if (!kind.namespaced || VIEWS.some((view) => view.group === kind.group && view.kind === kind.kind)) continue;
    if (verbs !== undefined && !NEEDED_VERBS.every((verb) => verbs.includes(verb))) continue;
    // The objects are the same in every version of a kind.
    if (!kinds.has(resourceName(kind))) kinds.set(resourceName(kind), kind);
  }
  return [...kinds.values()];
}

/** Deletes an object and returns the remaining one; undefined if it is deleted. */
async function remove(client: Client, kind: Kind, object: Stored, failures: string[]): Promise<Stored | undefined> {
  if (object.metadata.deletionTimestamp !== undefined) return object;
  const { uid, name } = object.metadata;
  try {
    const last = await client.delete(kind, keyOf(object), { uid, reason: 'its namespace is being deleted' });
    return isDeletionDelayed(kind, last) ? last : undefined;
  } catch (error) {
    // Deleted, or replaced by another object of this name, which the next pass deletes.
    if (isSluiceError(error, 'NotFound')) return undefined;
    if (failures.length < MAX_FAILURES)
      failures.push(`${resourceName(kind)} ${JSON.stringify(name)}: ${messageOf(error)}`);
    return object;
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
