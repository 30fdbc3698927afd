import type { RevisionInFlight } from '../../package/model/policy/approval-rules.ts';
import type { HostUsers } from '../../package/model/policy/host-users.ts';
import { NO_PEOPLE, type People } from '../../package/model/policy/people.ts';
import type { EffectivePolicy } from '../../package/model/policy/policy.ts';
import type { PolicySubject } from '../../package/model/revision/package-revision.ts';
import { combinePolicies } from '../../package/store/policies/combine-policies.ts';
import { inFolderOf } from '../../package/store/policies/concerned-revisions.ts';
import { effectivePolicy, type PolicySurroundings } from '../../package/store/policies/effective-policy.ts';
import { isSelectedBy, type SelectedRevision, variantSetsOf } from '../../package/store/policies/selected-packages.ts';
import {
  allowedSignersOf,
  hostUsersNameOf,
  parseHostUsers,
  parsePeople,
} from '../../package/store/policies/user-lists.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { PackagePolicy } from '../../resource/kinds/sluice/package-policy.ts';
import type { DeepReadonly, Stored } from '../../resource/object/object.ts';
import type { ObjectReaders } from './object-readers.ts';
import type { SelectsPackage } from './packages-in-flight.ts';
import { policyFoldersAt, sharingRepositories } from './shared-repositories.ts';

/**
 * Returns the effective policy of a revision of a repository in this namespace. Throws Unavailable before policies were read. Rights
 * are granted by namespace, so policies and repositories of other namespaces do not count, except if two namespaces have registered
 * the same packages, on any branches: then the requirements of each apply in the other, or a user could bypass one through the other.
 */
export function policyOf(readers: ObjectReaders, revision: PolicySubject, namespace: string): EffectivePolicy {
  const repository = readers.repositories.get({ namespace, name: revision.key.repository });
  const policiesOf = (where: string) => readers.policiesIn(where);
  // Only what needs a list fails where it was not read.
  const surroundingsIn = (
    where: string,
    named: Stored<Repository> | undefined,
    there: SelectedRevision = revision,
  ): PolicySurroundings => ({
    people: () => (named === undefined ? NO_PEOPLE : peopleFor(readers, named)),
    hostUsers: () => (named === undefined ? undefined : hostUsersFor(readers, named)),
    freezes: () => readers.freezesIn(where),
    policyProblems: () => readers.repositoryPolicies.problemsIn(where),
    variantSets: () => variantSetsOf(readers.variantReader, there, where),
    inFlight: (policy) => inFlightUnder(readers, policy, { ...revision, namespace: where }),
  });
  const policyFolders = () =>
    repository === undefined ? [] : policyFoldersAt(readers.sharing, repository, revision.path);
  const own = effectivePolicy(revision, repository, policiesOf(namespace), {
    ...surroundingsIn(namespace, repository),
    policyFolders,
  });
  if (repository === undefined) return own;
  return sharingRepositories(readers.sharing, repository).reduce((policy, other) => {
    const there = inFolderOf(other, revision);
    const { namespace: where = '' } = other.metadata;
    return there === undefined
      ? policy
      : combinePolicies(policy, effectivePolicy(there, other, policiesOf(where), surroundingsIn(where, other, there)), {
          namespace: where,
          isSameBranch: branchOf(other) === branchOf(repository),
        });
  }, own);
}

/** Other revisions in flight that a policy selects. */
function inFlightUnder(
  readers: ObjectReaders,
  policy: DeepReadonly<PackagePolicy>,
  revision: Pick<PolicySubject, 'namespace' | 'key' | 'name'>,
): RevisionInFlight[] {
  const isSelected: SelectsPackage = (other, repository) =>
    isSelectedBy(policy, other, repository, () => variantSetsOf(readers.variantReader, other, other.namespace));
  return readers.inFlight?.others(revision, isSelected) ?? [];
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
