import type { PackageRevision } from '../../package/package-revision.ts';
import type { EffectivePolicy } from '../../package/policy.ts';
import { effectivePolicy } from '../../package/policy-objects.ts';
import { packagePolicyKind } from '../../resource/kinds/package-policy.ts';
import { repositoryKind } from '../../resource/kinds/repository.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object.ts';
import type { ObjectSet } from './object-set.ts';

/** What the policies say about a revision at this moment. */
export function policyOf(objects: ObjectSet, revision: PackageRevision): EffectivePolicy {
  const repository = objects.find(repositoryKind, { namespace: DEFAULT_NAMESPACE, name: revision.key.repository });
  return effectivePolicy(revision, repository, objects.of(packagePolicyKind));
}
