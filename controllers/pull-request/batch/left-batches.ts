import { type Source, watchKind } from '../../../src/controller/source.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import { endsUnseen } from '../ending/ended-proposals.ts';
import type { PullRequests } from '../pull-requests.ts';
import { repositoryOf, type ShownProposals } from '../shown-proposals.ts';
import { membersAt, removeBatchBranch } from './batch-branch.ts';
import { batchesKey, batchPrefix } from './batch-name.ts';
import { mayReopen } from './reopen-batch.ts';

const HEADS = 'refs/heads/';
/** A branch without a pull request is left for so long to a process that may be about to open one for it. */
const OPENING_MS = 600_000;
/** Until a pull request that was found for a branch is reconciled. */
const FOUND_MS = 2000;

/**
 * Wakes once for the batches of each repository that has revisions, since earlier processes may have left some, and when a proposal ends that this
 * process has not come to.
 */
export function leftBatches(shown: Pick<ShownProposals, 'get'>): Source<ObjectKey> {
  const woken = new Set<string>();
  return watchKind(packageRevisionKind, {
    predicate: (event) =>
      (event.type === 'add' && !woken.has(keyText(repositoryOf(keyOf(event.object))))) || endsUnseen(event, shown),
    map: ({ object }) => {
      const repository = repositoryOf(keyOf(object));
      woken.add(keyText(repository));
      return [batchesKey(repository)];
    },
  });
}

/**
 * The members of what earlier processes left, of which no proposal may be left to report it: those that a policy still has reviewed. Undefined if
 * nothing was left.
 */
export async function leftMembers(
  store: Pick<RevisionStore, 'find' | 'list' | 'repositoryOf'>,
  repository: ObjectKey,
): Promise<readonly { readonly revision: PackageRevision; readonly review: ReviewPolicy }[] | undefined> {
  const [some] = store.list({ repository: keyText(repository) });
  if (some === undefined) return undefined;
  const packages = store.repositoryOf(some);
  const refs = packages.follows ? [] : await packages.git.listRefs([`${HEADS}${batchPrefix(packages.id)}`]);
  if (refs.length === 0) return undefined;
  await packages.refreshPolicies();
  const members: { revision: PackageRevision; review: ReviewPolicy }[] = [];
  for (const { oid } of refs)
    for (const { name } of (await membersAt(packages.git, oid)) ?? []) {
      const revision = store.find(keyText({ ...repository, name }));
      const review = revision === undefined ? undefined : packages.policyFor(revision).review;
      if (revision !== undefined && review !== undefined) members.push({ revision, review });
    }
  return members;
}

/**
 * Removes the branches that a process left which ended before it opened a pull request. `used`: those that are not looked at. Returns when to look
 * at younger ones again, in milliseconds.
 */
export async function removeLeftBranches(
  context: { readonly store: Pick<RevisionStore, 'find'>; readonly clock: Clock },
  pulls: PullRequests,
  repository: PackageRepository,
  used: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const waits: number[] = [];
  for (const { name, oid } of await repository.git.listRefs([`${HEADS}${batchPrefix(repository.id)}`])) {
    const branch = name.slice(HEADS.length);
    if (used.has(branch)) continue;
    const { committer } = await repository.git.readCommit(oid);
    const left = committer.time + OPENING_MS - context.clock.now();
    if (left > 0) {
      waits.push(left);
      continue;
    }
    // Hosts close a pull request together with its branch, which would reject what it lists.
    const pull = await pulls.forge.find(branch, pulls.base, signal);
    const isKept = pull?.state === 'open' || (pull && (await mayReopen(context, repository, pull))) === true;
    if (!isKept) {
      await removeBatchBranch(repository, branch, signal);
      continue;
    }
    // A closed one is noted only of a branch that was asked for.
    await pulls.ofBranch(branch, signal);
    if (pulls.note(pull)) waits.push(FOUND_MS);
  }
  return waits;
}
