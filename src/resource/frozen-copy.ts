/**
 * A deeply frozen copy without undefined properties, as if it had gone through JSON. What is frozen already is returned
 * as it is: objects that were read are shared, not copied.
 */
export function frozenCopy<T>(value: T): T {
  return copy(value) as T;
}

function copy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(copy));
  const result: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    // A key named __proto__ must become a property like any other.
    if (key === '__proto__') Object.defineProperty(result, key, { value: copy(inner), enumerable: true });
    else result[key] = copy(inner);
  }
  return Object.freeze(result);
}
