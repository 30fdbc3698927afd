import type { Forge, PullRequest } from '../../../src/forge/forge.ts';
import { isPermanent } from '../../../src/forge/pause-after.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import type { PackageRevision } from '../../../src/resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import type { PullRequests } from '../pull-requests.ts';
import { textsOf } from '../text/opening-texts.ts';
import { inlineCode, plainLine } from '../text/quote.ts';
import { proposalsIn, withPrepared, withSection } from '../text/section.ts';

export interface OpenContext {
  readonly events: EventDeduplicator;
  readonly signal: AbortSignal;
}

/** A proposal, as the API and the index have it. */
export interface ProposedRevision {
  readonly object: Stored<PackageRevision>;
  readonly revision: Revision;
}

/** What a pull request is opened for. */
export interface WantedPull {
  readonly branch: string;
  readonly proposals: readonly string[];
  /** The section of Sluice. */
  readonly text: string;
  readonly review: ReviewPolicy;
}

/** Opens the pull request of proposals, or returns the one that a user opened meanwhile. */
export async function openPull(
  { events, signal }: OpenContext,
  proposed: readonly ProposedRevision[],
  pulls: PullRequests,
  { branch, proposals, text, review }: WantedPull,
): Promise<PullRequest> {
  const texts = textsOf(
    proposed.map(({ revision }) => revision),
    review,
  );
  const body = withSection(texts.body, proposals, text);
  const { opensWithLabels } = pulls.forge;
  const { labels } = review;
  const moved = await closeMoved(pulls, branch, signal);
  const isReady = reviewersOf(review) === 0 && (opensWithLabels || labels.length === 0);
  const pull = await pulls.forge.open(
    {
      ...{ head: branch, base: pulls.base },
      ...{ title: texts.title, body: isReady ? withPrepared(body) : body },
      ...(opensWithLabels ? { labels } : {}),
    },
    signal,
  );
  pulls.note(pull);
  if (moved !== undefined) {
    await linkNext({ signal }, moved, pull, pulls.forge);
    const message = `${moved.url} was closed: a user has changed its base to ${plainLine(moved.base.branch)}`;
    for (const { object } of proposed) events.record(object, 'Normal', 'PullRequestClosed', message, 'moved');
  }
  if (proposalsIn(pull.body).join() === proposals.join())
    for (const { object } of proposed)
      events.record(object, 'Normal', 'PullRequestOpened', `it is reviewed in ${pull.url}`, 'opened');
  return pull;
}

/**
 * Closes the pull request of a branch that a user had merged into another branch, which would publish nothing: there is one at most, however
 * often that is repeated. Returns it as it was.
 */
async function closeMoved(pulls: PullRequests, branch: string, signal: AbortSignal): Promise<PullRequest | undefined> {
  const number = pulls.movedOf(branch);
  if (number === undefined) return undefined;
  const moved = await pulls.forge.get(number, signal);
  if (moved.state !== 'open' || moved.base.branch === pulls.base) return undefined;
  const text = `This pull request is closed, since a user has changed its base to ${inlineCode(moved.base.branch)}: nothing that happens here has an effect. The proposal continues in another one.`;
  const body = withSection(moved.body, proposalsIn(moved.body), text);
  await pulls.forge.update(
    number,
    { state: 'closed', ...(proposalsIn(moved.body).length === 0 ? {} : { body }) },
    signal,
  );
  return moved;
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
    if (!isPermanent(error)) throw error;
  }
}

/** Adds labels and reviewers. Doing it twice changes nothing. Returns the reviewers that the host refused, with the messages. */
export async function preparePull(
  { events, signal }: OpenContext,
  object: Stored<PackageRevision>,
  pull: PullRequest,
  forge: Forge,
  { labels, reviewers }: Pick<ReviewPolicy, 'labels' | 'reviewers'>,
): Promise<ReadonlyMap<string, string>> {
  await forge.addLabels(pull, labels, signal);
  const refused = new Map<string, string>();
  for (const { name, reason } of await forge.requestReviewers(pull.number, reviewers, signal)) {
    const message = refusedText(pull, name, reason);
    events.record(object, 'Warning', 'ReviewerRefused', message, `reviewer ${name}`);
    refused.set(name, message);
  }
  return refused;
}

/** The message about a reviewer that the host refused. */
export function refusedText({ url }: PullRequest, name: string, reason: string): string {
  return `${url}: the review of ${plainLine(name)} cannot be requested: ${plainLine(reason)}; correct spec.review.reviewers`;
}

function reviewersOf({ reviewers }: ReviewPolicy): number {
  return reviewers.users.length + reviewers.teams.length;
}
