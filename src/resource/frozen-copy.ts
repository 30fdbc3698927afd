/** Objects known to be frozen at every depth: those that were made here. */
const deeplyFrozen = new WeakSet<object>();

/**
 * A deeply frozen copy without undefined properties, as if it had gone through JSON. What came out of this function
 * before is not copied again: objects that were read are shared.
 */
export function frozenCopy<T>(value: T): T {
  return copy(value) as T;
}

function copy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || deeplyFrozen.has(value)) return value;
  const result = Array.isArray(value) ? value.map(copy) : copyFields(value);
  deeplyFrozen.add(Object.freeze(result));
  return result;
}

function copyFields(value: object): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    // A key named __proto__ must become a property like any other.
    if (key === '__proto__') Object.defineProperty(result, key, { value: copy(inner), enumerable: true });
    else result[key] = copy(inner);
  }
  return result;
}
