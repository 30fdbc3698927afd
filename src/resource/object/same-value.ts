/** Deep equality of JSON-like values; the order of keys does not count, and undefined counts as absent. */
export function sameValue(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((item, index) => sameValue(item, right[index]));
  return covers(left, right) && covers(right, left, true);
}

/** True if `right` contains every key of `left` with the same value; `keysOnly` does not compare the values. */
function covers(left: object, right: object, keysOnly = false): boolean {
  for (const [key, value] of Object.entries(left)) {
    if (value === undefined) continue;
    const other = Object.hasOwn(right, key) ? (right as Record<string, unknown>)[key] : undefined;
    if (keysOnly ? other === undefined : !sameValue(value, other)) return false;
  }
  return true;
}
