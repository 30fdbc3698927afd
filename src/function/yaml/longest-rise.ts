/** A longest increasing subsequence of a list of different numbers: the members that kept their order. */
export function longestRise(numbers: readonly number[]): Set<number> {
  /** By length - 1, the smallest number that an increasing subsequence of that length ends with. */
  const ends: number[] = [];
  const before = new Map<number, number | undefined>();
  for (const number of numbers) {
    let low = 0;
    for (let high = ends.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((ends[middle] as number) < number) low = middle + 1;
      else high = middle;
    }
    before.set(number, ends[low - 1]);
    ends[low] = number;
  }
  const rise = new Set<number>();
  for (let at = ends.at(-1); at !== undefined; at = before.get(at)) rise.add(at);
  return rise;
}
