import { isSluiceError, unlessMissing } from '../../foundation/sluice-error.ts';
import { shorten } from '../../foundation/text/shorten.ts';
import { cleanAddress } from '../clean-address.ts';
import { closingOf } from '../comments/closing-comment.ts';
import {
  type Check,
  type Closing,
  COMMENT_AGE_MS,
  type Comment,
  type Forge,
  type MergedState,
  type NewPullRequest,
  type PullRequest,
  type PullRequestChange,
  type PullState,
  type Review,
} from '../forge.ts';
import type { ForgeIssues } from '../forge-issues.ts';
import {
  type BranchRules,
  MAX_ENDED,
  type Mergeability,
  type MergeMethod,
  type MergeOutcome,
  type MergeRequest,
} from '../forge-merging.ts';
import type { MergeQueue } from '../merge-queue.ts';
import { MergedBy } from '../merged-by.ts';
import { readPages } from '../read-pages.ts';
import { ofPresentBase } from '../reviews/base-changes.ts';
import { withRequestsAtMerge } from '../reviews/dismissed-reviews.ts';
import { lastVerdicts } from '../reviews/last-verdicts.ts';
import { type Reviewers, requestReviewers } from '../reviews/request-reviewers.ts';
import { teamName } from '../team-name.ts';
import { setCheckRuns, setStatuses } from './github-checks.ts';
import { GitHubClient, type GitHubClientOptions } from './github-client.ts';
import { GitHubComments } from './github-comments.ts';
import { GitHubIssues } from './github-issues.ts';
import { GitHubLabels } from './github-labels.ts';
import { GitHubMergeQueue } from './github-merge-queue.ts';
import { GitHubMerging } from './github-merging.ts';
import {
  anySchema,
  commentsSchema,
  eventsSchema,
  type GitHubPull,
  type GitHubReview,
  membershipSchema,
  pullSchema,
  pullsSchema,
  reviewsSchema,
} from './github-schemas.ts';
import { reviewStateOf } from './github-state-names.ts';
import { GitHubStates } from './github-states.ts';

const PAGE = 100;
/** Pages of one pull request's events, and of the comments at its end; what is on further ones does not count. */
const MAX_PAGES = 20;
const MAX_TITLE_CHARACTERS = 256;

/** A repository on GitHub or GitHub Enterprise Server, through the REST API. */
export class GitHubForge implements Forge {
  readonly opensWithLabels = false;
  readonly batchesReads = true;
  readonly reopensWithoutBranch = false;
  readonly mergeQueue: MergeQueue;
  readonly issues: ForgeIssues;
  readonly #address: string;
  readonly #client: GitHubClient;
  readonly #repository: { readonly owner: string; readonly repo: string };
  readonly #mergedBy = new MergedBy();
  readonly #merging: GitHubMerging;
  readonly #comments: GitHubComments;
  readonly #states: GitHubStates;
  readonly #labels: GitHubLabels;

  constructor(options: GitHubClientOptions) {
    const { owner, name } = options;
    this.#client = new GitHubClient(options);
    this.#repository = { owner, repo: name };
    this.mergeQueue = new GitHubMergeQueue(this.#client, this.#repository);
    this.#comments = new GitHubComments(this.#client, this.#repository);
    this.#states = new GitHubStates(this.#client, this.#repository);
    this.#labels = new GitHubLabels(this.#client, this.#repository);
    this.issues = new GitHubIssues(this.#client, this.#repository, this.#labels);
    this.#address = `${this.#client.api}/repos/${encodeURIComponent(owner)}/${encodeURIComponent(name)}`;
    this.#merging = new GitHubMerging(this.#client, this.#repository, (number, signal) => this.get(number, signal));
  }

  listOpen(base: string, limit: number, signal: AbortSignal): Promise<readonly PullRequest[]> {
    return this.#list({ state: 'open', base }, limit, () => true, signal);
  }

  listUpdated(since: string, limit: number, signal: AbortSignal): Promise<readonly PullRequest[]> {
    const from = Date.parse(since);
    return this.#list({ state: 'all' }, limit, ({ updatedAt }) => Date.parse(updatedAt) >= from, signal);
  }

  async get(number: number, signal: AbortSignal): Promise<PullRequest> {
    const pull = await this.#client.call(pullSchema, signal, ({ pulls }, options) =>
      pulls.get({ ...this.#repository, pull_number: number, ...options }),
    );
    return this.#pullOf(pull);
  }

  async open({ head, base, title, body }: NewPullRequest, signal: AbortSignal): Promise<PullRequest> {
    const wanted = { head, base, title: shorten(title, MAX_TITLE_CHARACTERS), body };
    try {
      const pull = await this.#client.call(pullSchema, signal, ({ pulls }, options) =>
        pulls.create({ ...this.#repository, ...wanted, ...options }),
      );
      return this.#pullOf(pull);
    } catch (error) {
      if (!isSluiceError(error, 'InvalidInput')) throw error;
      // GitHub ignores a filter for a branch without the owner.
      const filter = { state: 'open' as const, base, head: `${this.#repository.owner}:${head}` };
      const open = await this.#list(filter, Number.POSITIVE_INFINITY, () => true, signal);
      const found = open.find((pull) => pull.head.branch === head && pull.head.isSameRepository);
      if (found === undefined) throw error;
      return found;
    }
  }

  async update(number: number, { title, body, state }: PullRequestChange, signal: AbortSignal): Promise<PullRequest> {
    const change = {
      ...(title === undefined ? {} : { title: shorten(title, MAX_TITLE_CHARACTERS) }),
      ...(body === undefined ? {} : { body }),
      ...(state === undefined ? {} : { state }),
    };
    const pull = await this.#client.call(pullSchema, signal, ({ pulls }, options) =>
      pulls.update({ ...this.#repository, pull_number: number, ...change, ...options }),
    );
    return this.#pullOf(pull);
  }

  async state(number: number, signal: AbortSignal): Promise<PullState> {
    const { pull, reviews, baseChangedAt, ...state } = await this.#states.state(number, signal);
    // Where there are more than one page of them.
    const all = ofPresentBase(reviews ?? (await this.#lastReviews(number, signal)), baseChangedAt);
    return { ...state, pull: this.#mergedBy.complete(pull), reviews: all };
  }

  async mergedState({ number, closedAt }: PullRequest, signal: AbortSignal): Promise<MergedState> {
    const { scheduled, reviews, baseChangedAt, dismissals, unsureMerger } = await this.#states.merged(number, signal);
    const all = reviews ?? (await this.#lastReviews(number, signal));
    return {
      reviews: ofPresentBase(withRequestsAtMerge(all, dismissals, closedAt), baseChangedAt),
      ...(scheduled === undefined ? {} : { scheduled }),
      ...(unsureMerger === undefined ? {} : { unsureMerger }),
    };
  }

  async reviews(number: number, signal: AbortSignal): Promise<readonly Review[]> {
    const reviews = await this.#lastReviews(number, signal);
    if (!reviews.some(({ state }) => state === 'approved')) return reviews;
    return ofPresentBase(reviews, (await this.#states.state(number, signal)).baseChangedAt);
  }

  #lastReviews(number: number, signal: AbortSignal): Promise<readonly Review[]> {
    const of = { ...this.#repository, pull_number: number, per_page: PAGE };
    return lastVerdicts(`pull request ${this.#address}/pulls/${number}`, async (page) => {
      const reviews = await this.#client.call(reviewsSchema, signal, ({ pulls }, options) =>
        pulls.listReviews({ ...of, page, ...options }),
      );
      return { reviews: reviews.map(reviewOf), isLast: reviews.length < PAGE };
    });
  }

  async closing(
    { number, closedAt }: Pick<PullRequest, 'number' | 'closedAt'>,
    signal: AbortSignal,
  ): Promise<Closing | undefined> {
    const issue = { ...this.#repository, issue_number: number, per_page: PAGE };
    const events = await allPages((page) =>
      this.#client.call(eventsSchema, signal, ({ issues }, options) =>
        issues.listEvents({ ...issue, page, ...options }),
      ),
    );
    const by = events.findLast(({ event }) => event === 'closed')?.actor?.login;
    if (by === undefined) return undefined;
    const ended = closedAt === undefined ? Number.NaN : Date.parse(closedAt);
    const since = Number.isNaN(ended) ? {} : { since: new Date(ended - COMMENT_AGE_MS).toISOString() };
    const comments = await allPages((page) =>
      this.#client.call(commentsSchema, signal, ({ issues }, options) =>
        issues.listComments({ ...issue, ...since, page, ...options }),
      ),
    );
    return closingOf(
      by,
      comments.map(({ user, created_at: at, body }) => ({ author: user?.login, at, body })),
      events.findLast(({ event }) => event === 'reopened')?.created_at,
    );
  }

  requestReviewers(
    number: number,
    reviewers: Reviewers,
    signal: AbortSignal,
  ): Promise<readonly { readonly name: string; readonly reason: string }[]> {
    return requestReviewers(reviewers, (wanted) =>
      this.#client.call(anySchema, signal, ({ pulls }, options) =>
        pulls.requestReviewers({ ...this.#repository, pull_number: number, ...wanted, ...options }),
      ),
    );
  }

  addLabels({ number, labels }: PullRequest, wanted: readonly string[], signal: AbortSignal): Promise<void> {
    return this.#labels.add(number, labels, wanted, signal);
  }

  async setChecks(
    commit: string,
    checks: readonly Check[],
    signal: AbortSignal,
    { isFirst = false }: { readonly isFirst?: boolean } = {},
  ): Promise<void> {
    const app = await this.#client.app(signal);
    const of = { ...this.#repository, commit, isFirst };
    await (app === undefined
      ? setStatuses(this.#client, of, checks, signal)
      : setCheckRuns(this.#client, app, of, checks, signal));
  }

  async find(head: string, base: string, signal: AbortSignal): Promise<PullRequest | undefined> {
    // GitHub ignores a filter for a branch without the owner.
    const filter = { state: 'all' as const, base, head: `${this.#repository.owner}:${head}` };
    const found = await this.#list(filter, MAX_ENDED, () => true, signal);
    const own = found.filter((pull) => pull.head.branch === head && pull.head.isSameRepository);
    return own.find(({ state }) => state === 'open') ?? own.sort((a, b) => b.number - a.number)[0];
  }

  merge(number: number, wanted: MergeRequest, signal: AbortSignal): Promise<MergeOutcome> {
    return this.#merging.merge(number, wanted, signal);
  }

  dequeue(number: number, signal: AbortSignal): Promise<'removed' | 'absent' | 'other'> {
    return this.#merging.dequeue(number, signal);
  }

  mergeability(number: number, signal: AbortSignal): Promise<Mergeability> {
    return this.#states.mergeability(number, signal);
  }

  branchRules(branch: string, signal: AbortSignal): Promise<BranchRules> {
    return this.#merging.branchRules(branch, signal);
  }

  mergeMethods(branch: string, signal: AbortSignal): Promise<readonly MergeMethod[] | undefined> {
    return this.#merging.mergeMethods(branch, signal);
  }

  isAsWritten(comment: Comment, signal: AbortSignal): Promise<boolean> {
    return this.#comments.isAsWritten(comment, signal);
  }

  comments(number: number, since: string, limit: number, signal: AbortSignal): Promise<readonly Comment[]> {
    return this.#comments.list(number, since, limit, signal);
  }

  setComment(number: number, topic: string, body: string, signal: AbortSignal): Promise<Comment> {
    return this.#comments.set(number, topic, body, signal);
  }

  findComment(number: number, topic: string, signal: AbortSignal): Promise<Comment | undefined> {
    return this.#comments.find(number, topic, signal);
  }

  async isTeamMember(team: string, username: string, signal: AbortSignal): Promise<boolean> {
    const { organization: org, name: team_slug } = teamName(team);
    const read = this.#client.call(membershipSchema, signal, ({ teams }, options) =>
      teams.getMembershipForUserInOrg({ org, team_slug, username, ...options }),
    );
    // An invitation that was not accepted is `pending`.
    return (await unlessMissing(read))?.state === 'active';
  }

  mayWrite(user: string, signal: AbortSignal): Promise<boolean | undefined> {
    return this.#comments.mayWrite(user, signal);
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  #pullOf(pull: GitHubPull): PullRequest {
    return this.#mergedBy.complete(pullOf(pull));
  }

  /** Pull requests in the order of their last changes, up to the first one that is not wanted. */
  async #list(
    filter: { readonly state: 'open' | 'all'; readonly base?: string; readonly head?: string },
    limit: number,
    isWanted: (pull: PullRequest) => boolean,
    signal: AbortSignal,
  ): Promise<PullRequest[]> {
    const found = new Map<number, PullRequest>();
    const order = { sort: 'updated', direction: 'desc' } as const;
    const pulls = readPages({ size: PAGE, end: 'short page' }, (page, size) =>
      this.#client.call(pullsSchema, signal, (rest, options) =>
        rest.pulls.list({ ...this.#repository, ...filter, ...order, per_page: size, page, ...options }),
      ),
    );
    for await (const read of pulls) {
      const pull = this.#pullOf(read);
      if (!isWanted(pull)) break;
      found.set(pull.number, pull);
      if (found.size >= limit) break;
    }
    return [...found.values()].slice(0, limit);
  }
}

async function allPages<Entry>(read: (page: number) => Promise<readonly Entry[]>): Promise<readonly Entry[]> {
  const all: Entry[] = [];
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const entries = await read(page);
    all.push(...entries);
    if (entries.length < PAGE) break;
  }
  return all;
}

function pullOf(pull: GitHubPull): PullRequest {
  const { merged_at: mergedAt, merge_commit_sha: commit, merged_by: by, closed_at: closedAt, head, base } = pull;
  const { created_at: createdAt, updated_at: updatedAt } = pull;
  const isMerged = mergedAt !== undefined && mergedAt !== null;
  return {
    number: pull.number,
    url: cleanAddress(pull.html_url),
    state: isMerged ? 'merged' : pull.state,
    title: pull.title,
    body: pull.body ?? '',
    author: pull.user?.login ?? '',
    head: { branch: head.ref, commit: head.sha, isSameRepository: head.repo?.id === base.repo.id },
    base: { branch: base.ref },
    labels: pull.labels.map(({ name }) => name),
    ...(isMerged ? { merged: { commit: commit ?? '', by: by?.login, base: base.sha } } : {}),
    ...(closedAt === undefined || closedAt === null ? {} : { closedAt }),
    ...{ createdAt, updatedAt },
  };
}

function reviewOf({ id, user, state, ...review }: GitHubReview): Review | undefined {
  const verdict = reviewStateOf(state);
  if (verdict === undefined || user === undefined || user === null) return undefined;
  return {
    ...{ id: String(id), author: user.login, state: verdict },
    ...{
      commit: review.commit_id ?? undefined,
      url: cleanAddress(review.html_url),
      submittedAt: review.submitted_at ?? '',
    },
  };
}
