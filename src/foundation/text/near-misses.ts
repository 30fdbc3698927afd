/** Names that the user may have meant, the nearest first, at most `limit`. */
export function nearMisses(wanted: string, names: Iterable<string>, limit = 3): string[] {
  const allowed = Math.max(2, Math.floor(wanted.length / 4));
  const found: { name: string; distance: number }[] = [];
  for (const name of names) {
    const contained = wanted.length >= 3 && (name.includes(wanted) || wanted.includes(name));
    const distance = contained ? 1 : editDistance(wanted, name, allowed);
    if (distance <= allowed) found.push({ name, distance });
  }
  found.sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1));
  return found.slice(0, limit).map(({ name }) => name);
}

/** Levenshtein distance, or more than `limit` if it is larger. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let previous = Array.from({ length: b.length + 1 }, (_unused, index) => index);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const change = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(change, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? limit + 1;
}
