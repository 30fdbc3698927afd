/**
 * The fields of `given` that a schema dropped on the way to `kept`, as paths. A field set to null or undefined counts
 * as not given.
 */
export function unknownFields(given: unknown, kept: unknown): (string | number)[][] {
  const found: (string | number)[][] = [];
  compare(given, kept, [], found);
  return found;
}

function compare(given: unknown, kept: unknown, path: (string | number)[], found: (string | number)[][]): void {
  if (given === kept || typeof given !== 'object' || given === null || typeof kept !== 'object' || kept === null)
    return;
  // This runs on every write: one path that grows and shrinks, copied only for what is found.
  if (Array.isArray(given)) {
    if (!Array.isArray(kept)) return;
    for (let index = 0; index < given.length; index += 1) {
      path.push(index);
      compare(given[index], kept[index], path, found);
      path.pop();
    }
    return;
  }
  for (const key of Object.keys(given)) {
    const value = (given as Record<string, unknown>)[key];
    if (value === undefined || value === null) continue;
    if (!Object.hasOwn(kept, key)) found.push([...path, key]);
    else if (typeof value === 'object') {
      path.push(key);
      compare(value, (kept as Record<string, unknown>)[key], path, found);
      path.pop();
    }
  }
}
