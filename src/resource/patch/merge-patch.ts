import { isJsonObject } from '../object/own-property.ts';

/** A JSON merge patch: null removes a field, an object is merged, anything else replaces. */
export type MergePatch = { readonly [key: string]: unknown };

/** Applies a JSON merge patch (RFC 7386) and returns a new value; neither argument is changed. */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch;
  const entries = new Map(isJsonObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) entries.delete(key);
    else if (value !== undefined) entries.set(key, applyMergePatch(entries.get(key), value));
  }
  // fromEntries defines properties, so a key named __proto__ stays a key.
  return Object.fromEntries(entries);
}
