import type { Oid } from '../../git/git-repository.ts';
import { inSlices } from '../../git/in-slices.ts';
import type { Candidate } from './candidate.ts';
import { FactCache, type FolderFact } from './fact-cache.ts';
import { commitKey, type Place } from './fact-reader.ts';

/** The part of a cache that present revisions and the packages on the main branch are made of. */
export async function liveFacts(
  cache: FactCache,
  candidates: Iterable<Candidate>,
  recordOf: (uid: string) => Oid | undefined,
  main: { readonly head: Oid | undefined; readonly directory: string; readonly folders: Iterable<FolderFact> },
): Promise<FactCache> {
  const live = new FactCache();
  const keep = (place: Place) => copy(cache.commits, live.commits, commitKey(place));
  if (main.head !== undefined) keep({ oid: main.head, path: main.directory });
  await inSlices(main.folders, ({ tree, kptfileBlob }) => live.folders.set(tree, kptfileBlob));
  await inSlices(candidates, ({ refOid, path, tip, uid }) => {
    keep({ oid: refOid, path });
    copy(cache.kptfiles, live.kptfiles, tip.kptfileBlob);
    copy(cache.records, live.records, recordOf(uid));
  });
  return live;
}

function copy<Value>(from: ReadonlyMap<string, Value>, to: Map<string, Value>, key: string | undefined): void {
  const value = key === undefined ? undefined : from.get(key);
  if (key !== undefined && value !== undefined) to.set(key, value);
}
