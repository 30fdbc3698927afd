import { LruCache } from '../../foundation/lru-cache.ts';
import { canonicalAddressNow, foldersOverlap } from '../../git/open/repository-address.ts';
import type { HostUsers } from '../../package/model/policy/host-users.ts';
import type { People } from '../../package/model/policy/people.ts';
import type { EffectivePolicy } from '../../package/model/policy/policy.ts';
import type { PackageRevision } from '../../package/model/revision/package-revision.ts';
import {
  allowedSignersOf,
  combinePolicies,
  effectivePolicy,
  hostUsersNameOf,
  parseHostUsers,
  parsePeople,
  type SelectedRevision,
} from '../../package/store/policy-objects.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { ObjectReaders } from './object-readers.ts';

/** Milliseconds for which the canonical form of an address is cached. */
const CACHED_MS = 5000;
const MAX_CACHED = 10_000;

const addresses = new LruCache<string, { readonly canonical: string; readonly until: number }>({
  maxEntries: MAX_CACHED,
});

/**
 * Returns the effective policy of a revision of a repository in this namespace. Throws Unavailable before policies were read. Rights
 * are granted by namespace, so policies and repositories of other namespaces do not count, except if two namespaces have registered
 * the same packages, on any branches: then the requirements of each apply in the other, or a user could bypass one through the other.
 */
export function policyOf(readers: ObjectReaders, revision: PackageRevision, namespace: string): EffectivePolicy {
  const repository = readers.repositories.get({ namespace, name: revision.key.repository });
  const policiesOf = (where: string | undefined) =>
    readers.policies.list().filter(({ metadata }) => metadata.namespace === where);
  const people = repository === undefined ? undefined : peopleFor(readers, repository);
  const hostUsers = repository === undefined ? undefined : hostUsersFor(readers, repository);
  const own = effectivePolicy(revision, repository, policiesOf(namespace), people, hostUsers);
  if (repository === undefined) return own;
  return sharingRepositories(readers.repositories.list(), repository).reduce((policy, other) => {
    const there = inFolderOf(other, revision);
    const { namespace: where = '' } = other.metadata;
    return there === undefined
      ? policy
      : combinePolicies(policy, effectivePolicy(there, other, policiesOf(where), peopleFor(readers, other)), {
          namespace: where,
          isSameBranch: branchOf(other) === branchOf(repository),
        });
  }, own);
}

function branchOf({ spec }: Stored<Repository>): string {
  return spec.git?.branch ?? 'main';
}

/** The people whose keys a repository lists; undefined if it lists none. */
function peopleFor(readers: ObjectReaders, repository: Stored<Repository>): People | undefined {
  const name = allowedSignersOf(repository);
  const { namespace } = repository.metadata;
  const listed = name === undefined ? undefined : readers.configMaps.get({ namespace, name });
  return listed === undefined ? undefined : parsePeople(listed);
}

/**
 * Returns the mapping of host accounts to users for a repository; undefined if the reports of its host do not count.
 */
function hostUsersFor(readers: ObjectReaders, repository: Stored<Repository>): HostUsers | undefined {
  const name = hostUsersNameOf(repository);
  const { namespace } = repository.metadata;
  return name === undefined ? undefined : parseHostUsers(readers.configMaps.get({ namespace, name }));
}

/**
 * Repositories of other namespaces with the same address, and folders that overlap, which have been read once: a mere object in a
 * namespace that cannot read the repository adds no requirement. The branch does not matter: drafts, proposals, records and tags
 * belong to the repository, so that all registrations read the same records.
 */
function sharingRepositories(all: readonly Stored<Repository>[], own: Stored<Repository>): Stored<Repository>[] {
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

/**
 * Returns the revision as in a repository of another namespace; undefined if its folder does not contain the package.
 */
function inFolderOf({ metadata, spec }: Stored<Repository>, revision: PackageRevision): SelectedRevision | undefined {
  const directory = spec.git?.directory ?? '/';
  const prefix = directory === '/' ? '' : `${directory}/`;
  if (!revision.path.startsWith(prefix)) return undefined;
  const key = { ...revision.key, repository: metadata.name, package: revision.path.slice(prefix.length) };
  return {
    key,
    record: revision.record,
    // Computed on first access.
    get kptfile() {
      return revision.kptfile;
    },
  };
}

function addressOf(address: string): string {
  const now = performance.now();
  const known = addresses.get(address);
  if (known !== undefined && known.until > now) return known.canonical;
  const canonical = canonicalAddressNow(address);
  addresses.set(address, { canonical, until: now + CACHED_MS });
  return canonical;
}
