import type { Forge, PullRequest } from '../../../src/forge/forge.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { PackageRevision } from '../../../src/resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { pauseAfter } from '../pause-after.ts';
import type { PullRequests } from '../pull-requests.ts';
import { textsOf } from '../text/opening-texts.ts';
import { plainLine } from '../text/quote.ts';
import { proposalsIn, withPrepared, withSection } from '../text/section.ts';

export interface OpenContext {
  readonly store: Pick<RevisionStore, 'repositoryOf'>;
  readonly events: EventDeduplicator;
  readonly signal: AbortSignal;
}

/** What a pull request is opened for. */
export interface WantedPull {
  readonly branch: string;
  readonly proposal: string;
  /** The section of Sluice. */
  readonly text: string;
  readonly review: ReviewPolicy;
}

/** Opens the pull request of a proposal, or returns the one that a user opened meanwhile. */
export async function openPull(
  { store, events, signal }: OpenContext,
  object: Stored<PackageRevision>,
  revision: Revision,
  pulls: PullRequests,
  { branch, proposal, text, review }: WantedPull,
): Promise<PullRequest> {
  const texts = textsOf(revision, review);
  const body = withSection(texts.body, [proposal], text);
  const { opensWithLabels } = pulls.forge;
  const { labels } = review;
  const isReady = reviewersOf(review) === 0 && (opensWithLabels || labels.length === 0);
  const pull = await pulls.forge.open(
    {
      ...{ head: branch, base: store.repositoryOf(revision).layout.branch },
      ...{ title: texts.title, body: isReady ? withPrepared(body) : body },
      ...(opensWithLabels ? { labels } : {}),
    },
    signal,
  );
  pulls.note(pull);
  if (proposalsIn(pull.body).includes(proposal))
    events.record(object, 'Normal', 'PullRequestOpened', `it is reviewed in ${pull.url}`, 'opened');
  return pull;
}

/** Leaves a link in the pull request that a new one replaces. It is missing where the host permits no comments. */
export async function linkNext(
  { signal }: Pick<OpenContext, 'signal'>,
  before: PullRequest,
  next: PullRequest,
  forge: Forge,
): Promise<void> {
  if (before.number === next.number) return;
  try {
    await forge.setComment(before.number, 'superseded', `The proposal continues in ${next.url}`, signal);
  } catch (error) {
    if (pauseAfter(error) === undefined) throw error;
  }
}

/** Adds labels and reviewers. Doing it twice changes nothing. */
export async function preparePull(
  { events, signal }: OpenContext,
  object: Stored<PackageRevision>,
  pull: PullRequest,
  forge: Forge,
  { labels, reviewers }: ReviewPolicy,
): Promise<void> {
  await forge.addLabels(pull, labels, signal);
  for (const { name, reason } of await forge.requestReviewers(pull.number, reviewers, signal)) {
    const message = `${pull.url}: the review of ${plainLine(name)} cannot be requested: ${plainLine(reason)}; correct spec.review.reviewers`;
    events.record(object, 'Warning', 'ReviewerRefused', message, `reviewer ${name}`);
  }
}

function reviewersOf({ reviewers }: ReviewPolicy): number {
  return reviewers.users.length + reviewers.teams.length;
}
