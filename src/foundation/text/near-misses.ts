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

/** What may have been meant by a name that is unknown, as the end of a message; empty if no name is near. */
export function nearHint(wanted: string, names: Iterable<string>): string {
  const near = nearMisses(wanted, names);
  return near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`;
}

/** Levenshtein distance, or more than `limit` if it is larger. Only cells that can be within the limit are computed. */
function editDistance(a: string, b: string, limit: number): number {
  const beyond = limit + 1;
  if (Math.abs(a.length - b.length) > limit) return beyond;
  let previous = Array.from({ length: b.length + 1 }, (_unused, column) => column);
  let current = previous.map(() => beyond);
  for (let row = 1; row <= a.length; row += 1) {
    const [from, to] = [Math.max(1, row - limit), Math.min(b.length, row + limit)];
    current[from - 1] = from === 1 ? row : beyond;
    let least = current[from - 1] ?? beyond;
    for (let column = from; column <= to; column += 1) {
      const change = (previous[column - 1] ?? beyond) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const distance = Math.min(change, (previous[column] ?? beyond) + 1, (current[column - 1] ?? beyond) + 1);
      current[column] = distance;
      least = Math.min(least, distance);
    }
    if (to < b.length) current[to + 1] = beyond;
    // No later row is nearer.
    if (least > limit) return beyond;
    [previous, current] = [current, previous];
  }
  return Math.min(previous[b.length] ?? beyond, beyond);
}
