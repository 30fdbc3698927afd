import { mapLimited } from '../../src/foundation/map-limited.ts';
import { isSluiceError, messageOf } from '../../src/foundation/sluice-error.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { eventV1Kind } from '../../src/resource/kinds/event-v1.ts';
import { PACKAGE_KINDS } from '../../src/resource/kinds/index.ts';
import { keyOf, type Stored } from '../../src/resource/object/object.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import { isHeld, resourceName } from '../../src/resource/storage/memory/object-rules.ts';
import type { Registry } from '../../src/resource/storage/registry.ts';
import type { Verb } from '../../src/resource/storage/storage.ts';

/** What one pass over the objects of a namespace found and left. */
export interface ContentReport {
  /** How many objects there were. */
  readonly found: number;
  /** How many stay for the time being, by the name of their kind's plural with its group. */
  readonly remaining: ReadonlyMap<string, number>;
  /** How many of them each finalizer holds. */
  readonly finalizers: ReadonlyMap<string, number>;
  /** Why objects could not be deleted. */
  readonly failures: readonly string[];
}

/** Deletions that wait for the storage together, so that they share its syncs. */
const AT_ONCE = 64;
/** Failures that are told. */
const MOST_FAILURES = 10;
const NEEDED_VERBS: readonly Verb[] = ['delete', 'list'];

/** Asks for the deletion of all objects in a namespace, of whatever kind, and tells what stays. */
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
    await mapLimited(items, AT_ONCE, async (object) => {
      const left = await remove(client, kind, object, failures);
      if (left === undefined) return;
      count(remaining, resourceName(kind));
      for (const finalizer of left.metadata.finalizers ?? []) count(finalizers, finalizer);
    });
  }
  return { found, remaining, finalizers, failures };
}

/** Package revisions are a view of Git, and go with the Repository that shows them; the newer events are a view of the core ones. */
const VIEWS: readonly Pick<Kind, 'group' | 'kind'>[] = [...PACKAGE_KINDS, eventV1Kind];

/** Kinds with objects of their own. */
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

/** What is left of an object; undefined if it is gone. */
async function remove(client: Client, kind: Kind, object: Stored, failures: string[]): Promise<Stored | undefined> {
  if (object.metadata.deletionTimestamp !== undefined) return object;
  const { uid, name } = object.metadata;
  try {
    const last = await client.delete(kind, keyOf(object), { uid, reason: 'its namespace is being deleted' });
    return isHeld(kind, last) ? last : undefined;
  } catch (error) {
    // Gone, or another one under the same name, which the next pass deletes.
    if (isSluiceError(error, 'NotFound')) return undefined;
    if (failures.length < MOST_FAILURES)
      failures.push(`${resourceName(kind)} ${JSON.stringify(name)}: ${messageOf(error)}`);
    return object;
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
