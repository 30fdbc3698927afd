import type { Oid, RefChange } from '../../../git/git-repository.ts';

/** The differences between the refs of an index and those of its repository. */
export function diffRefs(
  indexed: ReadonlyMap<string, Oid>,
  refs: readonly { readonly name: string; readonly oid: Oid }[],
): RefChange[] {
  const changes: RefChange[] = [];
  let known = 0;
  for (const { name, oid } of refs) {
    const before = indexed.get(name);
    if (before !== undefined) known += 1;
    if (before !== oid) changes.push({ name, before, after: oid });
  }
  // This runs about every second, and refs are seldom deleted.
  if (known === indexed.size) return changes;
  const seen = new Set(refs.map(({ name }) => name));
  for (const [name, before] of indexed) {
    if (!seen.has(name)) changes.push({ name, before, after: undefined });
  }
  return changes;
}
