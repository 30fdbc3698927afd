import { inSlices } from '../../foundation/concurrency/in-slices.ts';

/** A run of this length is sorted in some milliseconds. */
const RUN_LENGTH = 4_000;

interface Named {
  readonly name: string;
}

/** The items sorted by name, without equal names. In slices: a remote may list hundreds of thousands of refs, in any order. */
export async function sortedByName<Item extends Named>(items: readonly Item[]): Promise<Item[]> {
  let runs: Item[][] = [];
  for (let at = 0; at < items.length; at += RUN_LENGTH) runs.push(items.slice(at, at + RUN_LENGTH));
  await inSlices(runs, (run) => run.sort(byName));
  while (runs.length > 1) {
    const merged: Item[][] = [];
    for (let at = 0; at < runs.length; at += 2) merged.push(await merge(runs[at] ?? [], runs[at + 1] ?? []));
    runs = merged;
  }
  return runs[0] ?? [];
}

async function merge<Item extends Named>(left: readonly Item[], right: readonly Item[]): Promise<Item[]> {
  const merged: Item[] = [];
  let next = 0;
  await inSlices(left, (item) => {
    for (let other = right[next]; other !== undefined && byName(other, item) < 0; other = right[next]) {
      merged.push(other);
      next += 1;
    }
    merged.push(item);
  });
  return merged.concat(right.slice(next));
}

function byName(a: Named, b: Named): number {
  return a.name < b.name ? -1 : 1;
}
