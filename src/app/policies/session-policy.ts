import type { HostUsers } from '../../package/model/policy/host-users.ts';
import { NO_PEOPLE, type People } from '../../package/model/policy/people.ts';
import type { EffectivePolicy } from '../../package/model/policy/policy.ts';
import type { PolicySubject } from '../../package/model/revision/package-revision.ts';
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
import { sharingRepositories } from './shared-repositories.ts';

/**
 * Returns the effective policy of a revision of a repository in this namespace. Throws Unavailable before policies were read. Rights
 * are granted by namespace, so policies and repositories of other namespaces do not count, except if two namespaces have registered
 * the same packages, on any branches: then the requirements of each apply in the other, or a user could bypass one through the other.
 */
export function policyOf(readers: ObjectReaders, revision: PolicySubject, namespace: string): EffectivePolicy {
  const repository = readers.repositories.get({ namespace, name: revision.key.repository });
  const policiesOf = (where: string) => readers.policies.listIn(where);
  // Only what needs a list fails where it was not read.
  const listsOf = (named: Stored<Repository>) => ({
    people: () => peopleFor(readers, named),
    hostUsers: () => hostUsersFor(readers, named),
  });
  const lists = repository === undefined ? undefined : listsOf(repository);
  const own = effectivePolicy(revision, repository, policiesOf(namespace), lists);
  if (repository === undefined) return own;
  return sharingRepositories(readers.sharing, repository).reduce((policy, other) => {
    const there = inFolderOf(other, revision);
    const { namespace: where = '' } = other.metadata;
    return there === undefined
      ? policy
      : combinePolicies(policy, effectivePolicy(there, other, policiesOf(where), listsOf(other)), {
          namespace: where,
          isSameBranch: branchOf(other) === branchOf(repository),
        });
  }, own);
}

function branchOf({ spec }: Stored<Repository>): string {
  return spec.git?.branch ?? 'main';
}

/** The people whose keys a repository lists; none if its ConfigMap does not exist, so that all pushes count as an unknown person's. */
function peopleFor(readers: ObjectReaders, repository: Stored<Repository>): People {
  const name = allowedSignersOf(repository);
  const { namespace } = repository.metadata;
  const listed = name === undefined ? undefined : readers.lists.get({ namespace, name });
  return listed === undefined ? NO_PEOPLE : parsePeople(listed);
}

/**
 * Returns the mapping of host accounts to users for a repository; undefined if the reports of its host do not count.
 */
function hostUsersFor(readers: ObjectReaders, repository: Stored<Repository>): HostUsers | undefined {
  const name = hostUsersNameOf(repository);
  const { namespace } = repository.metadata;
  return name === undefined ? undefined : parseHostUsers(readers.lists.get({ namespace, name }));
}

/**
 * Returns the revision as in a repository of another namespace; undefined if its folder does not contain the package.
 */
function inFolderOf({ metadata, spec }: Stored<Repository>, revision: PolicySubject): SelectedRevision | undefined {
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
