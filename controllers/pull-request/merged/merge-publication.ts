import type { PullRequest } from '../../../src/forge/forge.ts';
import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { sinceOf } from '../../../src/package/store/policies/repository-reviews.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { type Repository, repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import type { Stored } from '../../../src/resource/object/object.ts';

/** Since when merges in a repository publish by a policy; see `ReviewPolicy.mergesSince`. */
type Since = NonNullable<ReviewPolicy['mergesSince']>;
type Place = Pick<PackageRepository, 'namespace' | 'repository' | 'index'>;
type Recorded = NonNullable<NonNullable<Repository['status']>['mergePublication']>[number];

/**
 * Returns since when merges in a repository publish by a policy, as the status of the Repository has it now. It is recorded there first if it is not: the
 * present head of the main branch. Undefined if it could not be recorded yet.
 */
export async function mergePublicationOf(
  client: Client,
  place: Place,
  review: ReviewPolicy,
  signal: AbortSignal,
): Promise<Since | undefined> {
  const found = await readOrRecord(client, place, review, signal);
  return found === 'raced' ? undefined : found;
}

/** The same; `raced` if another writer has changed the Repository meanwhile. */
async function readOrRecord(
  client: Client,
  place: Place,
  review: ReviewPolicy,
  signal: AbortSignal,
): Promise<Since | 'raced' | undefined> {
  const read = await readRecorded(client, place, review, signal);
  if (read === undefined) return undefined;
  const { policy, repository, own } = read;
  const { publishOn } = review;
  const since = (recorded: Recorded) => sinceOf(recorded, policy.metadata, repository.metadata);
  if (own?.publishOn === publishOn) return since(own);
  const isNew = policy.metadata.generation === 1;
  const { mainHead } = place.index;
  // Nothing can be merged before there is a main branch.
  if (!isNew && mainHead === undefined) return undefined;
  const { name, uid } = policy.metadata;
  const begun = {
    ...{ policy: name, uid, publishOn, ...commitOf(mainHead) },
    // It was the other of the two values by which merges of users publish.
    ...(own === undefined ? {} : { ofUsers: own.ofUsers ?? commitOf(own.commit) }),
  };
  return (await record(client, repository, begun.policy, begun, signal)) ? since(begun) : 'raced';
}

function commitOf(commit: string | undefined): { commit?: string } {
  return commit === undefined ? {} : { commit };
}

/**
 * Records when merges begin or end to publish by a policy as it was read, so that merges from between do not publish later. Returns false if another
 * writer has changed the Repository meanwhile, so that it has to be done again: nothing else may wake the caller for that.
 */
export async function recordMergePublication(
  client: Client,
  place: Place,
  review: ReviewPolicy,
  signal: AbortSignal,
): Promise<boolean> {
  const { publishOn, mergesSince } = review;
  if ((mergesSince !== undefined) === (publishOn !== 'approval')) return true;
  if (publishOn !== 'approval') return (await readOrRecord(client, place, review, signal)) !== 'raced';
  const read = await readRecorded(client, place, review, signal);
  return read?.own === undefined || record(client, read.repository, read.own.policy, undefined, signal);
}

/** The policy, if it is still as it was read, and what is recorded of it. */
async function readRecorded(
  client: Client,
  { namespace, repository: name }: Place,
  { policy: policyName, publishOn }: ReviewPolicy,
  signal: AbortSignal,
) {
  const [policy, repository] = await Promise.all([
    client.find(packagePolicyKind, { namespace, name: policyName }, { signal }),
    client.find(repositoryKind, { namespace, name }, { signal }),
  ]);
  if (repository === undefined || policy?.spec.review?.publishOn !== publishOn) return undefined;
  const { uid } = policy.metadata;
  const own = repository.status?.mergePublication?.find((one) => one.policy === policyName && one.uid === uid);
  return { policy, repository, own };
}

/**
 * Records this of a policy in the status of the Repository, where it takes the place of what is there. In the status of the policy, each repository
 * would be written with all others. Entries of policies that were deleted are removed. Returns false if the Repository was changed meanwhile.
 */
async function record(
  client: Client,
  repository: Stored<Repository>,
  policy: string,
  begun: Recorded | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const others = (repository.status?.mergePublication ?? []).filter((one) => one.policy !== policy);
  const { namespace } = repository.metadata;
  const present = await Promise.all(
    others.map(async (one) => {
      const found = await client.find(packagePolicyKind, { namespace, name: one.policy }, { signal });
      return found?.metadata.uid === one.uid;
    }),
  );
  const kept = others.filter((_, index) => present[index]);
  const status = { ...repository.status, mergePublication: begun === undefined ? kept : [...kept, begun] };
  try {
    await client.updateStatus(repositoryKind, { ...repository, status }, { signal });
    return true;
  } catch (error) {
    // Another controller was first.
    if (isSluiceError(error, 'Conflict')) return false;
    throw error;
  }
}

/**
 * Whether a merge was made before merges published by the policy, however long before. The clock of the host decides only about what was merged between
 * the creation of a policy, or of the Repository if that is later, and the time at which Sluice read it: without it, what is merged right after the
 * registration, while the repository is read for the first time, would be part of the head that is recorded then. Both times have whole seconds: a merge of
 * the same second counts, since it would be lost otherwise without a report.
 */
export async function isMergedBefore(
  { git, index }: Pick<PackageRepository, 'git' | 'index'>,
  { merged, closedAt = '' }: Pick<PullRequest, 'merged' | 'closedAt'>,
  { commit: since, createdAt = '' }: Since,
): Promise<boolean> {
  if (Date.parse(closedAt) >= Date.parse(createdAt)) return false;
  const commit = merged?.commit;
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
  pull: Pick<PullRequest, 'state' | 'merged' | 'closedAt'>,
  signal: AbortSignal,
): Promise<ReviewPolicy | undefined> {
  if (pull.state !== 'merged' || review.publishOn !== 'merge') return review;
  const since = await mergePublicationOf(client, repository, review, signal);
  if (since === undefined) return undefined;
  const isBefore = await isMergedBefore(repository, pull, since);
  return isBefore ? { ...review, publishOn: 'approval' } : review;
}
