import type { PullRequest } from '../../../src/forge/forge.ts';
import { isSluiceError, SluiceError } from '../../../src/foundation/sluice-error.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { type PackagePolicy, packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { DEFAULT_NAMESPACE, type ObjectKey, type Stored } from '../../../src/resource/object/object.ts';

/** Since when merges in a repository publish by a policy; see `ReviewPolicy.mergesSince`. */
type Since = NonNullable<ReviewPolicy['mergesSince']>;
type Place = Pick<PackageRepository, 'namespace' | 'repository' | 'index'>;

/**
 * Returns since when merges in a repository publish by a policy, as its status has it now. It is recorded there first if it is not: the present head of
 * the main branch, or nothing for a policy that was not changed since its creation. Undefined if it could not be recorded yet.
 */
export async function mergePublicationOf(
  client: Client,
  { namespace, repository, index }: Place,
  { policy: name, publishOn }: ReviewPolicy,
  signal: AbortSignal,
): Promise<Since | undefined> {
  const policy = await client.find(packagePolicyKind, { namespace, name }, { signal });
  if (policy?.spec.review?.publishOn !== publishOn) return undefined;
  const known = policy.status?.mergePublication ?? [];
  const own = known.find((one) => one.repository === repository);
  if (own?.publishOn === publishOn) return own;
  const isNew = policy.metadata.generation === 1;
  // Nothing can be merged before there is a main branch.
  if (!isNew && index.mainHead === undefined) return undefined;
  const begun = { repository, publishOn, ...(isNew ? {} : { commit: index.mainHead }) };
  const mergePublication = [...known.filter((one) => one !== own), begun];
  return (await writeStatus(client, policy, mergePublication, signal)) ? begun : undefined;
}

/** Records when merges begin or end to publish by a policy as it was read, so that merges from between do not publish later. */
export async function recordMergePublication(
  client: Client,
  place: Place,
  review: ReviewPolicy,
  signal: AbortSignal,
): Promise<void> {
  const { policy: name, publishOn, mergesSince } = review;
  if ((mergesSince !== undefined) === (publishOn !== 'approval')) return;
  if (publishOn !== 'approval') {
    await mergePublicationOf(client, place, review, signal);
    return;
  }
  const { namespace, repository } = place;
  const policy = await client.find(packagePolicyKind, { namespace, name }, { signal });
  if (policy?.spec.review?.publishOn !== publishOn) return;
  const known = policy.status?.mergePublication ?? [];
  const others = known.filter((one) => one.repository !== repository);
  if (others.length < known.length) await writeStatus(client, policy, others, signal);
}

/** Removes what is recorded about a repository that is not registered any more: another one may get its name. */
export async function forgetMergePublication(
  client: Client,
  { namespace = DEFAULT_NAMESPACE, name: repository }: ObjectKey,
  signal: AbortSignal,
): Promise<void> {
  for (const policy of (await client.list(packagePolicyKind, { namespace, signal })).items) {
    const known = policy.status?.mergePublication ?? [];
    const others = known.filter((one) => one.repository !== repository);
    if (others.length === known.length || (await writeStatus(client, policy, others, signal))) continue;
    throw new SluiceError('Conflict', `PackagePolicy ${policy.metadata.name} has changed meanwhile; it is read again`);
  }
}

async function writeStatus(
  client: Client,
  policy: Stored<PackagePolicy>,
  mergePublication: readonly NonNullable<NonNullable<PackagePolicy['status']>['mergePublication']>[number][],
  signal: AbortSignal,
): Promise<boolean> {
  const status = { ...policy.status, mergePublication: [...mergePublication] };
  try {
    await client.updateStatus(packagePolicyKind, { ...policy, status }, { signal });
    return true;
  } catch (error) {
    // Another reconciliation was first.
    if (isSluiceError(error, 'Conflict')) return false;
    throw error;
  }
}

/** Whether a merge was made before merges published by the policy, however long before. */
export async function isMergedBefore(
  { git, index }: Pick<PackageRepository, 'git' | 'index'>,
  commit: string | undefined,
  { commit: since }: Since,
): Promise<boolean> {
  if (since === undefined || !isOid(since) || commit === undefined || !isOid(commit)) return false;
  const found = await git.statObjects([since, commit]);
  // What is not fetched is no part of what was the main branch.
  if (found.some((one) => one?.type !== 'commit')) return false;
  // Most merges are later, often not by much, which saves a walk through the whole history.
  if (commit !== since && (await index.isOnMain(since, commit))) return false;
  return index.isOnMain(commit, since);
}

/**
 * The policy for a pull request that has ended: a merge from before merges published by it publishes nothing. Undefined if the policy has to be read
 * again.
 */
export async function policyForMerge(
  client: Client,
  repository: PackageRepository,
  review: ReviewPolicy,
  { state, merged }: Pick<PullRequest, 'state' | 'merged'>,
  signal: AbortSignal,
): Promise<ReviewPolicy | undefined> {
  if (state !== 'merged' || review.publishOn !== 'merge') return review;
  const since = await mergePublicationOf(client, repository, review, signal);
  if (since === undefined) return undefined;
  const isBefore = await isMergedBefore(repository, merged?.commit, since);
  return isBefore ? { ...review, publishOn: 'approval' } : review;
}
