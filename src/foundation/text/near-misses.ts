/** Names are untrusted and can be many and long: a hint may cost a millisecond. */
const MAX_CELLS = 100_000;
/** More differences are no typing error. */
const MAX_EDITS = 8;
/** Names of one message that get a hint. */
const MAX_HINTS = 10;

/**
 * Names that the user may have meant, the nearest first, at most `limit`. Of very many long names the last are compared only by whether one contains
 * the other.
 */
export function nearMisses(wanted: string, names: Iterable<string>, limit = 3): string[] {
  const allowed = Math.min(MAX_EDITS, Math.max(2, Math.floor(wanted.length / 4)));
  const cells = { left: MAX_CELLS };
  const found: { name: string; distance: number }[] = [];
  for (const name of names) {
    const contained = wanted.length >= 3 && (name.includes(wanted) || wanted.includes(name));
    const distance = contained ? 1 : editDistance(wanted, name, allowed, cells);
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

/** `nearHint` for the names that a message lists: the first ones get a hint. */
export function nearHints(names: Iterable<string>): (wanted: string) => string {
  let left = MAX_HINTS;
  return (wanted) => {
    left -= 1;
    return left < 0 ? '' : nearHint(wanted, names);
  };
}

/**
 * Levenshtein distance, or more than `limit` if it is larger or no cells are left. Only cells that can be within the limit are computed.
 */
function editDistance(a: string, b: string, limit: number, cells: { left: number }): number {
  const beyond = limit + 1;
  if (Math.abs(a.length - b.length) > limit || cells.left <= 0) return beyond;
  // The rows that are made, before any is computed.
  cells.left -= b.length;
  let previous = Array.from({ length: b.length + 1 }, (_unused, column) => column);
  let current = previous.map(() => beyond);
  for (let row = 1; row <= a.length; row += 1) {
    const [from, to] = [Math.max(1, row - limit), Math.min(b.length, row + limit)];
    cells.left -= to - from + 1;
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
