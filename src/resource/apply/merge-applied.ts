import { ownValue, setOwnValue } from '../object/own-property.ts';
import { sameValue } from '../object/same-value.ts';
import { fieldSchema, itemSchema } from '../schema/structural/child-schema.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import type { FieldElement } from './field-element.ts';
import { elementOf, shapeOf } from './shared-shape.ts';

/**
 * Merges an applied configuration into the live value: maps are merged by key, shared lists by item, a leaf takes the applied
 * value. No field is removed. Neither argument is changed; unchanged parts are those of the live value itself.
 */
export function mergeApplied(live: unknown, applied: unknown, schema: StructuralSchema): unknown {
  if (applied === undefined || live === applied) return live;
  if (live === undefined) return applied;
  const old = shapeOf(live, schema);
  const given = shapeOf(applied, schema);
  if (old.as === 'map' && given.as === 'map') return mergeMaps(old.fields, given.fields, schema);
  if (old.as === 'list' && given.as === 'list') return mergeLists(old.items, given.items, schema);
  return sameValue(live, applied) ? live : applied;
}

function mergeMaps(
  live: Readonly<Record<string, unknown>>,
  applied: Readonly<Record<string, unknown>>,
  schema: StructuralSchema,
): unknown {
  let merged: Record<string, unknown> | undefined;
  for (const [key, value] of Object.entries(applied)) {
    const old = ownValue(live, key);
    const next = mergeApplied(old, value, fieldSchema(schema, key));
    if (next === old) continue;
    merged ??= { ...live };
    setOwnValue(merged, key, next);
  }
  return merged ?? live;
}

/**
 * Applied items are in the order of the configuration. An item that exists only in the live list stays before the shared item
 * that it preceded.
 */
function mergeLists(live: readonly unknown[], applied: readonly unknown[], schema: StructuralSchema): unknown {
  const liveElements = live.map((item, index) => elementOf(item, index, schema));
  const appliedElements = applied.map((item, index) => elementOf(item, index, schema));
  const given = new Set(appliedElements);
  const old = new Map<FieldElement, unknown>();
  for (const [index, element] of liveElements.entries()) {
    // An item that occurs twice is replaced, not merged.
    old.set(element, old.has(element) ? undefined : live[index]);
  }
  const merged: unknown[] = [];
  let next = 0;
  const takeLiveItemsBefore = (stop: FieldElement | undefined) => {
    for (; next < live.length && liveElements[next] !== stop; next += 1)
      if (!given.has(liveElements[next] as FieldElement)) merged.push(live[next]);
  };
  const shared = appliedElements.filter((element) => old.has(element));
  let sharedSeen = 0;
  for (const [index, element] of appliedElements.entries()) {
    takeLiveItemsBefore(shared[sharedSeen]);
    if (shared[sharedSeen] === element) {
      sharedSeen += 1;
      if (liveElements[next] === element) next += 1;
    }
    merged.push(mergeApplied(old.get(element), applied[index], itemSchema(schema)));
  }
  takeLiveItemsBefore(undefined);
  const unchanged = merged.length === live.length && merged.every((item, index) => item === live[index]);
  return unchanged ? live : merged;
}
