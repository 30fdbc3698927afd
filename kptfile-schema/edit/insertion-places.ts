import type { FieldShape } from '../model/field-shape.ts';

/** Keys to insert together, behind an existing key or, without one, before the first. */
export interface InsertionPlace {
  readonly after: string | undefined;
  readonly keys: readonly string[];
}

/**
 * Where new keys of a mapping belong. Known fields go where kpt's own order has them, unless the mapping is sorted
 * by name in another order than that (as kyaml writes conditions). Free keys, such as labels, keep a sorted mapping
 * sorted and go to the end of any other.
 */
export function insertionPlaces(
  existing: readonly string[],
  added: readonly string[],
  shape: FieldShape | undefined,
): InsertionPlace[] {
  const known = shape?.kind === 'object' ? [...shape.fields.keys()] : [];
  const precedes = orderOf(existing, known);
  const places = new Map<string | undefined, string[]>();
  for (const key of added) {
    let after: string | undefined;
    for (const candidate of existing) if (precedes(candidate, key)) after = candidate;
    const keys = places.get(after) ?? [];
    const index = keys.findIndex((other) => !precedes(other, key));
    keys.splice(index === -1 ? keys.length : index, 0, key);
    places.set(after, keys);
  }
  return [...places].map(([after, keys]) => ({ after, keys }));
}

function orderOf(existing: readonly string[], known: readonly string[]): (left: string, right: string) => boolean {
  const rank = (key: string): number => {
    const index = known.indexOf(key);
    return index === -1 ? known.length : index;
  };
  const sorted = existing.length > 1 && isOrdered(existing, (left, right) => left < right);
  if (known.length === 0) return sorted ? (left, right) => left < right : () => true;
  const canonical = isOrdered(existing, (left, right) => rank(left) <= rank(right));
  return sorted && !canonical ? (left, right) => left < right : (left, right) => rank(left) <= rank(right);
}

function isOrdered(keys: readonly string[], ordered: (left: string, right: string) => boolean): boolean {
  return keys.every((key, index) => index === 0 || ordered(keys[index - 1] ?? '', key));
}
