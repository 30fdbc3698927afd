import type { Oid } from '../../git/git-repository.ts';
import type { Candidate } from './candidate.ts';
import { FactCache, type FolderFact } from './fact-cache.ts';
import { commitKey, type Place } from './fact-reader.ts';

/** The part of a cache that present revisions and the packages on the main branch are made of. */
export function liveFacts(
  cache: FactCache,
  candidates: readonly Candidate[],
  recordOf: (uid: string) => Oid | undefined,
  main: { readonly head: Oid | undefined; readonly directory: string; readonly folders: Iterable<FolderFact> },
): FactCache {
  const live = new FactCache();
  const keep = (place: Place) => copy(cache.commits, live.commits, commitKey(place));
  if (main.head !== undefined) keep({ oid: main.head, path: main.directory });
  for (const { tree, kptfileBlob } of main.folders) live.folders.set(tree, kptfileBlob);
  for (const { refOid, path, tip, uid } of candidates) {
    keep({ oid: refOid, path });
    copy(cache.kptfiles, live.kptfiles, tip.kptfileBlob);
    copy(cache.records, live.records, recordOf(uid));
  }
  return live;
}

function copy<Value>(from: ReadonlyMap<string, Value>, to: Map<string, Value>, key: string | undefined): void {
  const value = key === undefined ? undefined : from.get(key);
  if (key !== undefined && value !== undefined) to.set(key, value);
}
