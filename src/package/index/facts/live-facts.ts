import { inSlices } from '../../../foundation/concurrency/in-slices.ts';
import type { Oid } from '../../../git/git-repository.ts';
import type { Candidate } from './candidate.ts';
import { FactCache, type FolderFact } from './fact-cache.ts';
import { KptfileFact } from './kptfile-fact.ts';
import type { TipFact } from './tip-fact.ts';

/**
 * Returns the facts that a cache needs for a fast restart: those of current revisions and of packages on the main branch.
 */
export async function liveFacts(
  cache: FactCache,
  candidates: readonly Candidate[],
  records: readonly Oid[],
  main: { readonly tip: TipFact; readonly placeholders: readonly Candidate[] } | undefined,
): Promise<FactCache> {
  const live = new FactCache();
  await inSlices(candidates, ({ ref, refOid, uid, key, outOfBand, tip, fact }) => {
    // The next process finds the reason again.
    if (tip.kptfileBlob === undefined && fact !== KptfileFact.NONE) return;
    live.refFacts.set(ref, { oid: refOid, uid, workspace: key.workspace, outOfBand, tip });
    copy(cache.kptfiles, live.kptfiles, tip.kptfileBlob);
  });
  const folders = new Map<string, FolderFact>();
  await inSlices(main?.placeholders ?? [], ({ key, uid, tip: { tree, kptfileBlob } }) => {
    if (tree === undefined || kptfileBlob === undefined) return;
    folders.set(key.package, { path: key.package, tree, kptfileBlob, uid });
    copy(cache.kptfiles, live.kptfiles, kptfileBlob);
  });
  live.main = main && { tip: main.tip, folders };
  await inSlices(records, (oid) => copy(cache.records, live.records, oid));
  return live;
}

function copy<Value>(from: ReadonlyMap<string, Value>, to: Map<string, Value>, key: string | undefined): void {
  const value = key === undefined ? undefined : from.get(key);
  if (key !== undefined && value !== undefined) to.set(key, value);
}
