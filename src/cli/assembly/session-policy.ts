import type { PackageRevision } from '../../package/package-revision.ts';
import type { EffectivePolicy } from '../../package/policy.ts';
import { allowedSignersOf, effectivePolicy, peopleIn } from '../../package/policy-objects.ts';
import { configMapKind } from '../../resource/kinds/config-map.ts';
import { packagePolicyKind } from '../../resource/kinds/package-policy.ts';
import { repositoryKind } from '../../resource/kinds/repository.ts';
import type { ObjectSet } from './object-set.ts';

/**
 * What the policies say at this moment about a revision of a repository in this namespace. Rights are given by namespace, so neither
 * a policy nor a repository of another one has a say.
 */
export function policyOf(objects: ObjectSet, revision: PackageRevision, namespace: string): EffectivePolicy {
  const repository = objects.find(repositoryKind, { namespace, name: revision.key.repository });
  const policies = objects.of(packagePolicyKind).filter(({ metadata }) => metadata.namespace === namespace);
  const name = repository === undefined ? undefined : allowedSignersOf(repository);
  const listed = name === undefined ? undefined : objects.find(configMapKind, { namespace, name });
  return effectivePolicy(revision, repository, policies, listed === undefined ? undefined : peopleIn(listed));
}
