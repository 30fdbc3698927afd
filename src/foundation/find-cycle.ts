/** Nodes that one search looks at. */
const MAX_NODES = 2000;

/**
 * Returns the shortest cycle of a directed graph through the node `start`, beginning and ending with it; undefined if there is none, or if
 * more than 2,000 nodes can be reached. `next` returns the nodes after one.
 */
export async function findCycle(
  start: string,
  next: (node: string) => Promise<Iterable<string>> | Iterable<string>,
): Promise<readonly string[] | undefined> {
  /** The node before each one, on the way from `start`. */
  const before = new Map<string, string>();
  const queue = [start];
  for (let node = queue.shift(); node !== undefined && before.size <= MAX_NODES; node = queue.shift()) {
    for (const following of await next(node)) {
      if (following === start) return [...pathTo(node, before), start];
      if (before.has(following)) continue;
      before.set(following, node);
      queue.push(following);
    }
  }
  return undefined;
}

function pathTo(node: string, before: ReadonlyMap<string, string>): string[] {
  const path: string[] = [];
  for (let at: string | undefined = node; at !== undefined; at = before.get(at)) path.unshift(at);
  return path;
}
