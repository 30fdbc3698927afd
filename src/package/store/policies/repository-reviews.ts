import type { Repository } from '../../../resource/kinds/porch/repository.ts';
import type { PackagePolicy } from '../../../resource/kinds/sluice/package-policy.ts';
import type { DeepReadonly } from '../../../resource/object/object.ts';
import type { ReviewPolicy } from '../../model/policy/review-policy.ts';
import { selects } from './selected-packages.ts';

type MergePublication = NonNullable<NonNullable<Repository['status']>['mergePublication']>[number];

/** The policies with reviews that can select packages of a repository. */
export function reviewsOf(
  repository: DeepReadonly<Repository>,
  policies: readonly DeepReadonly<PackagePolicy>[],
): readonly ReviewPolicy[] {
  const revision = { key: { repository: repository.metadata.name, package: '', workspace: '' } };
  return policies.flatMap(({ metadata, spec: { review, selector } }) => {
    const { name: policy, creationTimestamp: createdAt } = metadata;
    const { packages: _packages, packageSelector: _labels, ...ofRepository } = selector;
    return review === undefined || !selects(ofRepository, revision, repository)
      ? []
      : { ...review, policy, createdAt, ...mergesSince(review, metadata, repository) };
  });
}

function mergesSince(
  { publishOn }: Pick<ReviewPolicy, 'publishOn'>,
  metadata: DeepReadonly<PackagePolicy>['metadata'],
  repository: DeepReadonly<Repository>,
): Pick<ReviewPolicy, 'mergesSince'> {
  const { name, uid } = metadata;
  const begun = repository.status?.mergePublication?.find((one) => one.policy === name && one.uid === uid);
  const isOther = publishOn !== 'approval' && begun?.publishOn !== publishOn;
  return begun === undefined || isOther ? {} : { mergesSince: sinceOf(begun, metadata, repository.metadata) };
}

/**
 * Since when merges publish by a policy of which that was recorded. What was merged before the Repository was registered is as old as what was merged
 * before the policy was created.
 */
export function sinceOf(
  { commit, ofUsers }: DeepReadonly<Pick<MergePublication, 'commit' | 'ofUsers'>>,
  policy: DeepReadonly<PackagePolicy>['metadata'],
  repository: DeepReadonly<Repository>['metadata'],
): NonNullable<ReviewPolicy['mergesSince']> {
  const since = { commit, ...(ofUsers === undefined ? {} : { ofUsers }) };
  if (policy.generation !== 1) return since;
  return { ...since, createdAt: [policy.creationTimestamp ?? '', repository.creationTimestamp ?? ''].sort().at(-1) };
}
