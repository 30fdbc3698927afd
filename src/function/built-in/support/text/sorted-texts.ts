/** In the order in which published functions set keys. */
export function sortedTexts(texts: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...texts].sort(([a], [b]) => (a < b ? -1 : 1)));
}
