import type { ObjectReader } from '../../controller/object-reader.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { canonicalAddressNow, foldersOverlap } from '../../git/open/repository-address.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { ObjectKey, Stored } from '../../resource/object/object.ts';

/** Milliseconds for which the canonical form of an address is cached. */
const CACHED_MS = 5000;
const MAX_CACHED = 10_000;

const addresses = new LruCache<string, { readonly canonical: string; readonly until: number }>({
  maxEntries: MAX_CACHED,
});

/** A Repository and those that share its packages: all whose lists of people count for these. */
export function readRepositories(readers: ObjectReader<Repository>, key: ObjectKey): Stored<Repository>[] {
  const own = readers.get(key);
  return own === undefined ? [] : [own, ...sharingRepositories(readers.list(), own)];
}

/**
 * Repositories of other namespaces with the same address, and folders that overlap, which have been read once: a mere object in a
 * namespace that cannot read the repository adds no requirement. The branch does not matter: drafts, proposals, records and tags
 * belong to the repository, so that all registrations read the same records.
 */
export function sharingRepositories(all: readonly Stored<Repository>[], own: Stored<Repository>): Stored<Repository>[] {
  const { git } = own.spec;
  if (git === undefined) return [];
  const candidates = all.filter(({ metadata, spec, status }) => {
    const isOther = metadata.namespace !== own.metadata.namespace && status?.lastFullSyncTime != null;
    return isOther && spec.git !== undefined && foldersOverlap(spec.git.directory, git.directory);
  });
  if (candidates.length === 0) return [];
  const address = addressOf(git.repo);
  return candidates.filter(({ spec }) => spec.git !== undefined && addressOf(spec.git.repo) === address);
}

function addressOf(address: string): string {
  const now = performance.now();
  const known = addresses.get(address);
  if (known !== undefined && known.until > now) return known.canonical;
  const canonical = canonicalAddressNow(address);
  addresses.set(address, { canonical, until: now + CACHED_MS });
  return canonical;
}
