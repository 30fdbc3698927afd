import type { ObjectReader } from '../../controller/object-reader.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { addressGroup, canonicalAddressNow, foldersOverlap } from '../../git/open/repository-address.ts';
import type { PolicyFolder } from '../../package/model/policy/policy.ts';
import { policyFolderOf, policyFolderProblem, type Repository } from '../../resource/kinds/porch/repository.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../resource/object/object.ts';

/** Milliseconds for which the canonical form of an address is cached. */
const CACHED_MS = 5000;
const MAX_CACHED = 10_000;

const addresses = new LruCache<string, { readonly canonical: string; readonly until: number }>({
  maxEntries: MAX_CACHED,
});

/** The registered repositories, with an index by address. */
export interface RepositoryReader extends Pick<ObjectReader<Repository>, 'get' | 'byIndex'> {
  /** True for a repository, by its id, that this process has read. */
  hasRead(id: string): boolean;
}

/** The index of Repositories that `sharingRepositories` reads. */
export const BY_ADDRESS = 'address';

export function addressIndex({ spec }: Stored<Repository>): string[] {
  return spec.git === undefined ? [] : [addressGroup(spec.git.repo)];
}

/** A Repository and those that share its packages: all whose lists of people count for these. */
export function readRepositories(reader: RepositoryReader, key: ObjectKey): Stored<Repository>[] {
  const own = reader.get(key);
  return own === undefined ? [] : [own, ...sharingRepositories(reader, own)];
}

/**
 * Repositories of other namespaces with the same address, and folders that overlap, which have been read once: a mere object in a
 * namespace that cannot read the repository adds no requirement. The branch does not matter: drafts, proposals, records and tags
 * belong to the repository, so that all registrations read the same records. In the order of their namespaces and names.
 */
export function sharingRepositories(reader: RepositoryReader, own: Stored<Repository>): Stored<Repository>[] {
  const { git } = own.spec;
  if (git === undefined) return [];
  const candidates = reader.byIndex(BY_ADDRESS, addressGroup(git.repo)).filter((other) => {
    const { metadata, spec } = other;
    if (metadata.namespace === own.metadata.namespace || spec.git === undefined) return false;
    if (!foldersOverlap(spec.git.directory, git.directory)) return false;
    return isRead(reader, other);
  });
  if (candidates.length === 0) return [];
  const address = addressOf(git.repo);
  const sharing = candidates.filter(({ spec }) => spec.git !== undefined && addressOf(spec.git.repo) === address);
  return sharing.sort((left, right) => (keyText(keyOf(left)) < keyText(keyOf(right)) ? -1 : 1));
}

/**
 * The folders with policies on the branch of a Repository that a path in it is equal to, above or below. Of other namespaces those count that
 * `sharingRepositories` has, whatever their directories are.
 */
export function policyFoldersAt(reader: RepositoryReader, own: Stored<Repository>, path: string): PolicyFolder[] {
  const { git } = own.spec;
  if (git === undefined) return [];
  const named = reader.byIndex(BY_ADDRESS, addressGroup(git.repo)).flatMap((other) => {
    const folder = policyFolderOf(other);
    if (folder === undefined || policyFolderProblem(folder) !== undefined || !foldersOverlap(folder, path)) return [];
    const isOwn = other.metadata.namespace === own.metadata.namespace;
    if ((other.spec.git?.branch ?? 'main') !== (git.branch ?? 'main') || !(isOwn || isRead(reader, other))) return [];
    return { other, folder };
  });
  if (named.length === 0) return [];
  const address = addressOf(git.repo);
  return named
    .filter(({ other: { spec } }) => spec.git !== undefined && addressOf(spec.git.repo) === address)
    .map(({ other: { metadata }, folder }) => {
      const { namespace = '', name: repository } = metadata;
      return { namespace, repository, folder };
    });
}

function isRead(reader: RepositoryReader, repository: Stored<Repository>): boolean {
  return repository.status?.lastFullSyncTime != null || reader.hasRead(keyText(keyOf(repository)));
}

function addressOf(address: string): string {
  const now = performance.now();
  const known = addresses.get(address);
  if (known !== undefined && known.until > now) return known.canonical;
  const canonical = canonicalAddressNow(address);
  addresses.set(address, { canonical, until: now + CACHED_MS });
  return canonical;
}
