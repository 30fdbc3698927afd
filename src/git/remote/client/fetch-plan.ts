import { inSlices } from '../../../foundation/concurrency/in-slices.ts';
import type { Oid, Ref, RefChange, RefUpdate } from '../../git-repository.ts';
import { isRefName } from '../../ref-name.ts';
import { expectedValue, newValue } from '../../refs/ref-updates.ts';

/** A mapping of remote refs to local ones: names or patterns with one `*`, both sides alike. */
export interface Mapping {
  readonly source: string;
  readonly target: string;
}

/** Local refs that are sent as present objects, beside those that change. */
const MAX_OTHER_HAVES = 64;
const MAX_CHANGED_HAVES = 512;

/** The mappings of refspecs; undefined if one of them needs git: without `+`, with HEAD, an object id or an exclusion. */
export function mappingsOf(refspecs: readonly string[]): Mapping[] | undefined {
  const mappings: Mapping[] = [];
  for (const refspec of refspecs) {
    const [, source, target] = /^\+(refs\/[^:]*):(refs\/[^:]*)$/.exec(refspec) ?? [];
    if (source === undefined || target === undefined) return undefined;
    mappings.push({ source, target });
  }
  return mappings;
}

/** Returns the prefixes of the remote refs in the mappings. */
export function prefixesOf(mappings: readonly Mapping[]): string[] {
  return [...new Set(mappings.map(({ source }) => beforeStar(source)))];
}

/** The first single ref that was requested and is absent. */
export function missingSource(mappings: readonly Mapping[], remote: readonly Ref[]): string | undefined {
  const single = mappings.filter(({ source }) => !source.includes('*')).map(({ source }) => source);
  if (single.length === 0) return undefined;
  const missing = new Set(single);
  for (const { name } of remote) missing.delete(name);
  return single.find((name) => missing.has(name));
}

/**
 * Plans the updates that make the local refs equal to those of the remote. Skips refs with names that Git does not allow. In slices:
 * a repository may have hundreds of thousands of refs.
 */
export async function planUpdates(
  mappings: readonly Mapping[],
  remote: readonly Ref[],
  local: readonly Ref[],
  prune: boolean,
): Promise<RefUpdate[]> {
  const before = new Map<string, Oid>();
  await inSlices(local, ({ name, oid }) => before.set(name, oid));
  const updates = new Map<string, RefUpdate>();
  const named = new Set<string>();
  await inSlices(remote, ({ name, oid }) => {
    for (const mapping of mappings) {
      const ref = targetOf(mapping, name);
      if (ref === undefined || named.has(ref)) continue;
      named.add(ref);
      const old = before.get(ref);
      if (old === oid || (old === undefined && !isRefName(ref))) continue;
      updates.set(ref, old === undefined ? { type: 'create', ref, new: oid } : { type: 'update', ref, old, new: oid });
    }
  });
  if (prune)
    await inSlices(before, ([ref, old]) => {
      if (!named.has(ref)) updates.set(ref, { type: 'delete', ref, old });
    });
  return [...updates.values()];
}

/**
 * Returns the `have` lines of a fetch: the old values of changing refs, and the branches with the shortest names (or other
 * refs if no branch exists), since other branches usually start from them.
 */
export function havesFor(updates: readonly RefUpdate[], local: readonly Ref[]): Oid[] {
  const changed = updates.map(expectedValue).filter((oid) => oid !== null);
  const branches = local.filter(({ name }) => name.startsWith('refs/heads/'));
  const byDepth = Map.groupBy(branches.length > 0 ? branches : local, depth);
  const shortest = [...byDepth.keys()].sort((a, b) => a - b).flatMap((one) => byDepth.get(one) ?? []);
  return [
    ...new Set([...changed.slice(0, MAX_CHANGED_HAVES), ...shortest.slice(0, MAX_OTHER_HAVES).map(({ oid }) => oid)]),
  ];
}

function targetOf({ source, target }: Mapping, name: string): string | undefined {
  const star = source.indexOf('*');
  if (star < 0) return name === source ? target : undefined;
  const tail = source.length - star - 1;
  const matches =
    name.length > star + tail && name.startsWith(source.slice(0, star)) && name.endsWith(source.slice(star + 1));
  // By a function: a name may contain what `replace` takes for a pattern.
  return matches ? target.replace('*', () => name.slice(star, name.length - tail)) : undefined;
}

function beforeStar(pattern: string): string {
  const star = pattern.indexOf('*');
  return star < 0 ? pattern : pattern.slice(0, star);
}

function depth({ name }: Ref): number {
  let slashes = 0;
  for (let at = name.indexOf('/'); at >= 0; at = name.indexOf('/', at + 1)) slashes += 1;
  return slashes;
}

/** What an update changes, for callers of a fetch. */
export function changeOf(update: RefUpdate): RefChange {
  return {
    name: update.ref,
    before: expectedValue(update) ?? undefined,
    after: newValue(update) ?? undefined,
  };
}
