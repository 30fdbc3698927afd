import { SluiceError, unlessMissing } from '../../foundation/sluice-error.ts';
import { shorten } from '../../foundation/text/shorten.ts';
import { annotationLink } from '../annotation-link.ts';
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
import type { BranchRules, Mergeability, MergeMethod, MergeOutcome, MergeRequest } from '../forge-merging.ts';
import { ForgeHttp, type ForgeHttpOptions } from '../http/forge-http.ts';
import { MergedBy } from '../merged-by.ts';
import { readPages } from '../read-pages.ts';
import { ofPresentBase } from '../reviews/base-changes.ts';
import { withRequestsAtMerge } from '../reviews/dismissed-reviews.ts';
import { lastVerdicts } from '../reviews/last-verdicts.ts';
import { type Reviewers, requestReviewers } from '../reviews/request-reviewers.ts';
import { isSameName } from '../same-name.ts';
import { teamName } from '../team-name.ts';
import { closingIn } from './gitea-closing.ts';
import { GiteaComments } from './gitea-comments.ts';
import { GiteaIssues } from './gitea-issues.ts';
import { GiteaLabels } from './gitea-labels.ts';
import { branchRulesOf, mergePull, methodsOf, unsureMergerOf } from './gitea-merge.ts';
import { GiteaOpening, type OpeningRequests } from './gitea-opening.ts';
import { pullOf, reviewOf } from './gitea-pull.ts';
import { baseChangeIn, scheduledIn } from './gitea-schedule.ts';
import {
  branchSchema,
  type CommitStatus,
  combinedStatusSchema,
  type GiteaPull,
  type GiteaReview,
  manualMergesSchema,
  memberSchema,
  methodsSchema,
  pullSchema,
  pullsSchema,
  reviewsSchema,
  type Timeline,
  teamsSchema,
  timelineSchema,
} from './gitea-schemas.ts';
import { GiteaSearch, type SearchRequests } from './gitea-search.ts';

/** The default maximum of Gitea. The operator may set a lower one, so that only an empty page is the end. */
const PAGE = 50;
/** Changed last first. */
const LAST_CHANGED = 'sort=recentupdate';
/** Gitea has columns of 255 characters. */
const MAX_TITLE_CHARACTERS = 255;
/** Pages of one pull request's conversation around its end, and of the statuses of one commit; what is on further ones does not count. */
const MAX_PAGES = 20;

export interface GiteaForgeOptions extends ForgeHttpOptions {
  readonly owner: string;
  readonly name: string;
}

/** A repository on Gitea or Forgejo, through its REST API. */
export class GiteaForge implements Forge {
  readonly opensWithLabels = true;
  readonly batchesReads = false;
  /** Through the API; its page requires the branch. */
  readonly reopensWithoutBranch = true;
  readonly issues: ForgeIssues;
  readonly #address: string;
  readonly #http: ForgeHttp;
  readonly #path: string;
  /** Its page for users. */
  readonly #page: string;
  readonly #mergedBy = new MergedBy();
  readonly #comments: GiteaComments;
  readonly #labels: GiteaLabels;
  readonly #opening: GiteaOpening;
  readonly #search: GiteaSearch;

  constructor({ owner, name, ...options }: GiteaForgeOptions) {
    this.#http = new ForgeHttp(options);
    this.#path = `/repos/${encodeURIComponent(owner)}/${encodeURIComponent(name)}`;
    this.#comments = new GiteaComments(this.#http, this.#path);
    this.#labels = new GiteaLabels(this.#http, this.#path);
    this.issues = new GiteaIssues(this.#http, this.#path, this.#labels);
    this.#opening = new GiteaOpening(this.#openingRequests(), this.#labels);
    this.#search = new GiteaSearch(this.#searchRequests());
    const api = options.api.replace(/\/+$/, '');
    this.#address = `${api}${this.#path}`;
    this.#page = `${api.replace(/\/api\/v1$/, '')}${this.#path.slice('/repos'.length)}`;
  }

  listOpen(base: string, limit: number, signal: AbortSignal): Promise<readonly PullRequest[]> {
    return this.#list(
      `state=open&${LAST_CHANGED}`,
      limit,
      (pull) => (pull.base.branch === base ? 'wanted' : 'other'),
      signal,
    );
  }

  listUpdated(since: string, limit: number, signal: AbortSignal): Promise<readonly PullRequest[]> {
    const from = Date.parse(since);
    return this.#list(
      `state=all&${LAST_CHANGED}`,
      limit,
      ({ updatedAt }) => (Date.parse(updatedAt) >= from ? 'wanted' : 'last'),
      signal,
    );
  }

  async get(number: number, signal: AbortSignal): Promise<PullRequest> {
    return this.#pullOf(await this.#http.json(pullSchema, 'GET', `${this.#path}/pulls/${number}`, { signal }));
  }

  open(wanted: NewPullRequest, signal: AbortSignal): Promise<PullRequest> {
    return this.#opening.open(wanted, signal);
  }

  async update(number: number, { title, body, state }: PullRequestChange, signal: AbortSignal): Promise<PullRequest> {
    const change = {
      ...(title === undefined ? {} : { title: shorten(title, MAX_TITLE_CHARACTERS) }),
      ...(body === undefined ? {} : { body }),
      ...(state === undefined ? {} : { state }),
    };
    const path = `${this.#path}/pulls/${number}`;
    return this.#pullOf(await this.#http.json(pullSchema, 'PATCH', path, { body: change, signal }));
  }

  async state(number: number, signal: AbortSignal): Promise<PullState> {
    const [pull, reviews] = await Promise.all([this.get(number, signal), this.reviews(number, signal)]);
    return { pull, reviews };
  }

  async reviews(number: number, signal: AbortSignal): Promise<readonly Review[]> {
    const reviews = await this.#lastReviews(number, reviewOf, signal);
    const approved = reviews
      .filter(({ state }) => state === 'approved')
      .map(({ submittedAt }) => Date.parse(submittedAt));
    const since = Math.min(...approved);
    // Changes of the base from before do not matter.
    if (approved.length === 0) return reviews;
    const query = Number.isNaN(since) ? '' : `?since=${new Date(since).toISOString()}`;
    const path = `${this.#path}/issues/${number}/timeline${query}`;
    return ofPresentBase(reviews, baseChangeIn(await this.#http.json(timelineSchema, 'GET', path, { signal })));
  }

  #lastReviews(number: number, map: typeof reviewOf, signal: AbortSignal): Promise<readonly Review[]> {
    const path = `${this.#path}/pulls/${number}/reviews`;
    return lastVerdicts(`pull request ${this.#address}/pulls/${number}`, async (page) => {
      const { entries, total } = await this.#http.page(reviewsSchema, `${path}?page=${page}&limit=${PAGE}`, { signal });
      return { reviews: entries.map(map), total };
    });
  }

  async mergedState({ number, closedAt }: PullRequest, signal: AbortSignal): Promise<MergedState> {
    // Without the number of a page, Gitea returns all entries: a part of them would hide a push.
    const path = `${this.#path}/issues/${number}/timeline`;
    const requests = new Set<string>();
    const noteRequest = (review: GiteaReview) => {
      if (review.state === 'REQUEST_CHANGES') requests.add(String(review.id));
      return reviewOf(review);
    };
    const [read, entries, repository] = await Promise.all([
      this.#lastReviews(number, noteRequest, signal),
      this.#http.json(timelineSchema, 'GET', path, { signal }),
      this.#http.json(manualMergesSchema, 'GET', this.#path, { signal }),
    ]);
    const dismissals = entries.flatMap(({ type, review_id: id, created_at: at }) => {
      const review = String(id ?? '');
      return type === 'dismiss_review' ? { review, at: at ?? '', wasRequest: requests.has(review) } : [];
    });
    const reviews = ofPresentBase(withRequestsAtMerge(read, dismissals, closedAt), baseChangeIn(entries));
    const scheduled = scheduledIn(entries);
    const unsureMerger = unsureMergerOf(repository);
    return {
      ...{ reviews, ...(scheduled === undefined ? {} : { scheduled }) },
      ...(unsureMerger === undefined ? {} : { unsureMerger }),
    };
  }

  async closing(
    { number, closedAt }: Pick<PullRequest, 'number' | 'closedAt'>,
    signal: AbortSignal,
  ): Promise<Closing | undefined> {
    const ended = closedAt === undefined ? Number.NaN : Date.parse(closedAt);
    const since = Number.isNaN(ended) ? '' : `since=${new Date(ended - COMMENT_AGE_MS).toISOString()}&`;
    const path = `${this.#path}/issues/${number}/timeline?${since}`;
    const entries: Timeline[] = [];
    for (let page = 1; page <= MAX_PAGES; page += 1) {
      const read = await this.#http.json(timelineSchema, 'GET', `${path}page=${page}&limit=${PAGE}`, { signal });
      // The order is that of the beginning. Entries that the user may not see are missing, so that a page may be shorter than others.
      if (read.length === 0) break;
      entries.push(...read);
    }
    return closingIn(entries);
  }

  async requestReviewers(
    number: number,
    reviewers: Reviewers,
    signal: AbortSignal,
  ): Promise<readonly { readonly name: string; readonly reason: string }[]> {
    const path = `${this.#path}/pulls/${number}`;
    const refused = await requestReviewers(reviewers, (body) =>
      this.#http.send('POST', `${path}/requested_reviewers`, { body, signal }),
    );
    const { teams } = reviewers;
    const accepted = teams.filter((team) => refused.every(({ name }) => name !== team));
    if (accepted.length === 0) return refused;
    const { requested_reviewers_teams: present } = await this.#http.json(pullSchema, 'GET', path, { signal });
    // Where the owner is a user, Gitea accepts any name, and requests nothing.
    const reason = 'the host has not requested it; only organizations have teams';
    for (const name of accepted) {
      if (present?.some((team) => isSameName(team.name, name)) !== true) refused.push({ name, reason });
    }
    return refused;
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
    const present = new Map<string, CommitStatus>();
    for (let page = 1; page <= MAX_PAGES && !isFirst; page += 1) {
      const path = `${this.#path}/commits/${commit}/status?page=${page}&limit=${PAGE}`;
      const statuses = (await this.#http.json(combinedStatusSchema, 'GET', path, { signal })).statuses ?? [];
      for (const status of statuses) present.set(status.context, status);
      if (statuses.length === 0 || checks.every(({ name }) => present.has(name))) break;
    }
    for (const check of checks) {
      const { name: context, state, title } = check;
      const description = shorten(title, MAX_TITLE_CHARACTERS);
      const link = annotationLink(`${this.#page}/src/commit/${commit}`, check) ?? '';
      const set = present.get(context);
      const isSet = set?.status === state && (set.description ?? '') === description;
      if (isSet && (set.target_url ?? '') === link) continue;
      await this.#http.send('POST', `${this.#path}/statuses/${commit}`, {
        body: { context, state, description, ...(link === '' ? {} : { target_url: link }) },
        signal,
      });
    }
  }

  find(head: string, base: string, signal: AbortSignal): Promise<PullRequest | undefined> {
    return this.#search.find(head, base, signal);
  }

  merge(number: number, wanted: MergeRequest, signal: AbortSignal): Promise<MergeOutcome> {
    return mergePull(
      {
        send: (body) => this.#http.send('POST', `${this.#path}/pulls/${number}/merge`, { body, signal }),
        get: () => this.get(number, signal),
      },
      wanted,
    );
  }

  async dequeue(): Promise<'absent'> {
    return 'absent';
  }

  /** Gitea has one value for a conflict and for a check that has not ended; rules it states only to users who try to merge. */
  async mergeability(number: number, signal: AbortSignal): Promise<Mergeability> {
    const path = `${this.#path}/pulls/${number}`;
    const { mergeable, draft } = await this.#http.json(pullSchema, 'GET', path, { signal });
    if (draft === true) return 'draft';
    return mergeable === true ? 'mergeable' : 'unknown';
  }

  async branchRules(branch: string, signal: AbortSignal): Promise<BranchRules> {
    const path = `${this.#path}/branches/${encodeURIComponent(branch)}`;
    return branchRulesOf(await this.#http.json(branchSchema, 'GET', path, { signal }));
  }

  async mergeMethods(_branch: string, signal: AbortSignal): Promise<readonly MergeMethod[]> {
    return methodsOf(await this.#http.json(methodsSchema, 'GET', this.#path, { signal }));
  }

  /** The history of edits is not in the API, and times have whole seconds. */
  async isAsWritten(): Promise<undefined> {
    return undefined;
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

  async isTeamMember(team: string, user: string, signal: AbortSignal): Promise<boolean> {
    const { organization, name } = teamName(team);
    const search = `/orgs/${encodeURIComponent(organization)}/teams/search?limit=50&q=${encodeURIComponent(name)}`;
    const { data } = await this.#http.json(teamsSchema, 'GET', search, { signal });
    const found = data?.find((one) => isSameName(one.name, name));
    if (found === undefined)
      throw new SluiceError('NotFound', `${organization} has no team ${name} that the token can read`);
    const member = `/teams/${found.id}/members/${encodeURIComponent(user)}`;
    const read = this.#http.json(memberSchema, 'GET', member, { signal });
    return (await unlessMissing(read)) !== undefined;
  }

  mayWrite(user: string, signal: AbortSignal): Promise<boolean | undefined> {
    return this.#comments.mayWrite(user, signal);
  }

  close(): Promise<void> {
    return this.#http.close();
  }

  #openingRequests(): OpeningRequests {
    return {
      create: async ({ title, ...wanted }, signal) => {
        const body = { ...wanted, title: shorten(title, MAX_TITLE_CHARACTERS) };
        return this.#pullOf(await this.#http.json(pullSchema, 'POST', `${this.#path}/pulls`, { body, signal }));
      },
      get: (number, signal) => this.get(number, signal),
      listOpen: (base, limit, signal) => this.listOpen(base, limit, signal),
      listOpenSince: (since) => {
        const sort = ({ updatedAt }: PullRequest) => (Date.parse(updatedAt) < since ? 'last' : 'wanted');
        // Those that wait for the list share it, so that none of them may end it; each request has a timeout.
        return this.#list(`state=open&${LAST_CHANGED}`, Number.POSITIVE_INFINITY, sort, new AbortController().signal);
      },
      update: (number, change, signal) => this.update(number, change, signal),
    };
  }

  #searchRequests(): SearchRequests {
    return {
      anyOf: async (head, base, signal) => {
        const branches = [encodeURIComponent(base), ...head.split('/').map(encodeURIComponent)].join('/');
        return this.#pullOf(await this.#http.json(pullSchema, 'GET', `${this.#path}/pulls/${branches}`, { signal }));
      },
      first: async ({ state, base }, sort, signal) => {
        // Without a sort, the ones that were opened last come first.
        const query = `state=${state}&base_branch=${encodeURIComponent(base)}`;
        return (await this.#list(query, 1, sort, signal))[0];
      },
    };
  }

  #pullOf(pull: GiteaPull): PullRequest {
    return this.#mergedBy.complete(pullOf(pull));
  }

  /** Wanted pull requests in the order of the list, up to the first one behind which there are none. */
  async #list(
    query: string,
    limit: number,
    sort: (pull: PullRequest) => 'wanted' | 'other' | 'last',
    signal: AbortSignal,
  ): Promise<PullRequest[]> {
    const found = new Map<number, PullRequest>();
    const path = `${this.#path}/pulls?${query}`;
    const pulls = readPages({ size: PAGE, end: 'empty page' }, (page, size) =>
      this.#http.page(pullsSchema, `${path}&page=${page}&limit=${size}`, { signal }),
    );
    for await (const read of pulls) {
      const pull = this.#pullOf(read);
      const sorted = sort(pull);
      if (sorted === 'last') break;
      if (sorted === 'wanted') found.set(pull.number, pull);
      if (found.size >= limit) break;
    }
    return [...found.values()].slice(0, limit);
  }
}
