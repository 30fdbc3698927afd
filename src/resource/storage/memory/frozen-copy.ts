/**
 * Returns a deeply frozen copy without undefined properties, as after a conversion to JSON and back. Frozen parts are shared,
 * not copied, so that writing an object that was read from a storage is cheap.
 */
export function frozenCopy<T>(value: T): T {
  return copy(value) as T;
}

function copy(value: unknown): unknown {
  if (isSettled(value)) return value;
  return Object.freeze(Array.isArray(value) ? value.map(copy) : copyFields(value as object));
}

/** True for a value that equals its copy: deeply frozen, without undefined properties. */
function isSettled(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (!Object.isFrozen(value)) return false;
  if (Array.isArray(value)) return value.every(isSettled);
  return Object.values(value).every((inner) => inner !== undefined && isSettled(inner));
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
