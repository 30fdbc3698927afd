import type { Repository } from '../../../resource/kinds/porch/repository.ts';
import type { PackagePolicy } from '../../../resource/kinds/sluice/package-policy.ts';
import type { DeepReadonly } from '../../../resource/object/object.ts';
import type { ReviewPolicy } from '../../model/policy/review-policy.ts';
import { selects } from './selected-packages.ts';

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
  { name, uid }: DeepReadonly<PackagePolicy>['metadata'],
  { status }: DeepReadonly<Repository>,
): Pick<ReviewPolicy, 'mergesSince'> {
  const begun = status?.mergePublication?.find((one) => one.policy === name && one.uid === uid);
  const isOther = publishOn !== 'approval' && begun?.publishOn !== publishOn;
  return begun === undefined || isOther ? {} : { mergesSince: { commit: begun.commit } };
}
