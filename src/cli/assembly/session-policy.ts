import type { PackageRevision } from '../../package/package-revision.ts';
import type { EffectivePolicy } from '../../package/policy.ts';
import { effectivePolicy } from '../../package/policy-objects.ts';
import { packagePolicyKind } from '../../resource/kinds/package-policy.ts';
import { repositoryKind } from '../../resource/kinds/repository.ts';
import type { ObjectFolder } from './object-folder.ts';

/** A gate that stays closed while the file of a policy cannot be read: what it demands is not known. */
export const UNREADABLE_POLICY = 'sluice.dev.UnreadablePolicy';

/** What the policies in the folder say about a revision at this moment. */
export function policyOf(objects: ObjectFolder, revision: PackageRevision): EffectivePolicy {
  const { repository: name } = revision.key;
  const repository = objects.objects(repositoryKind).find((object) => object.metadata.name === name);
  const policy = effectivePolicy(revision, repository, objects.objects(packagePolicyKind));
  const damaged = objects.problems().filter((problem) => problem.kind.kind === packagePolicyKind.kind);
  if (damaged.length === 0) return policy;
  const files = damaged.map(({ path }) => path).join(', ');
  return {
    ...policy,
    requiredGates: [...policy.requiredGates, { conditionType: UNREADABLE_POLICY, approveOnly: false, policy: files }],
    givers: [...policy.givers, { conditionType: UNREADABLE_POLICY, actors: [], policy: files }],
  };
}
