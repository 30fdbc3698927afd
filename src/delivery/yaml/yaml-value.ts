/**
 * YAML as it is delivered. A scalar records whether it was written plain: readers disagree on what plain `on`, `010` or `1e3` mean,
 * so a plain scalar keeps its exact text, and a quoted one stays a string for all of them.
 */
export interface Scalar {
  readonly text: string;
  readonly plain: boolean;
}

/** Keys in the order of the source, each once. */
export interface Mapping {
  readonly entries: Map<string, { readonly key: Scalar; readonly value: Value }>;
  /** The line of its beginning, from 1. */
  readonly line: number;
}

export type Value = Scalar | Mapping | readonly Value[];

export function isMapping(value: Value | undefined): value is Mapping {
  return value !== undefined && 'entries' in value && value.entries instanceof Map;
}

export function isSequence(value: Value | undefined): value is readonly Value[] {
  return Array.isArray(value);
}

export function isScalar(value: Value | undefined): value is Scalar {
  return value !== undefined && 'text' in value;
}

/** True for an empty, `~` or `null` plain scalar. */
export function isNull(value: Value | undefined): boolean {
  return isScalar(value) && value.plain && /^(?:|~|null|Null|NULL)$/.test(value.text);
}

/** The value at a path of keys. */
export function valueAt(value: Value | undefined, ...path: readonly string[]): Value | undefined {
  let here = value;
  for (const key of path) here = isMapping(here) ? here.entries.get(key)?.value : undefined;
  return here;
}

/** The text of the scalar at a path of keys, undefined if there is none or it is null. */
export function textAt(value: Value | undefined, ...path: readonly string[]): string | undefined {
  const here = valueAt(value, ...path);
  return isScalar(here) && !isNull(here) ? here.text : undefined;
}
