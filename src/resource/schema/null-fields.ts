import type { z } from 'zod';

type Path = readonly PropertyKey[];

/**
 * Validates a value with a zod schema. Clients written in Go send null for empty values, as does YAML for an empty line: a null
 * that the schema does not permit counts as absent. `checked` is the value that was validated.
 */
export function parseWithoutNulls<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): { readonly result: z.ZodSafeParseResult<z.output<Schema>>; readonly checked: unknown } {
  const result = schema.safeParse(value);
  if (result.success || !result.error.issues.some((issue) => isNullField(value, issue.path)))
    return { result, checked: value };
  const checked = withoutNulls(value, result.error.issues);
  return { result: schema.safeParse(checked), checked };
}

/** True if the path leads to a field of an object that is null. */
function isNullField(root: unknown, path: Path): boolean {
  let value = root;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return false;
    const inner = (value as Record<PropertyKey, unknown>)[step];
    if (inner === null) return !Array.isArray(value);
    value = inner;
  }
  return false;
}

/** Returns the value without the null fields of the issues; unaffected parts are shared. */
function withoutNulls(root: unknown, issues: readonly { readonly path: Path }[]): unknown {
  const ours = new Set<object>();
  function owned(value: object): Record<PropertyKey, unknown> {
    if (ours.has(value)) return value as Record<PropertyKey, unknown>;
    const copy = Array.isArray(value) ? [...value] : { ...value };
    ours.add(copy);
    return copy as Record<PropertyKey, unknown>;
  }
  const result = { root };
  for (const { path } of issues) {
    if (!isNullField(result.root, path)) continue;
    let holder: Record<PropertyKey, unknown> = result;
    let name: PropertyKey = 'root';
    for (const step of path) {
      const inner = holder[name];
      if (typeof inner !== 'object' || inner === null) break;
      const copy = owned(inner);
      holder[name] = copy;
      holder = copy;
      name = step;
    }
    delete holder[name];
  }
  return result.root;
}
