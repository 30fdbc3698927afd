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
  if (Array.isArray(given)) {
    if (!Array.isArray(kept)) return;
    for (const [index, item] of given.entries()) compare(item, kept[index], [...path, index], found);
    return;
  }
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null) continue;
    if (Object.hasOwn(kept, key)) compare(value, (kept as Record<string, unknown>)[key], [...path, key], found);
    else found.push([...path, key]);
  }
}
