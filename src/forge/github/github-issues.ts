import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { shorten } from '../../foundation/text/shorten.ts';
import { cleanAddress } from '../clean-address.ts';
import { MAX_COMMENT_CHARACTERS } from '../comments/topic-comment.ts';
import type { ForgeIssues, Issue, IssueChange, IssueState, IssueTopic, NewIssue } from '../forge-issues.ts';
import { bounded, findTopic, type HostIssues, openTopic, readTopic, withTopic } from '../issue-topics.ts';
import { readPages } from '../read-pages.ts';
import { isAmong } from '../same-name.ts';
import { type Account, readAccount } from './github-account.ts';
import type { GitHubClient } from './github-client.ts';
import type { GitHubLabels } from './github-labels.ts';
import { type GitHubIssue, issueSchema, issuesSchema } from './github-schemas.ts';

const PAGE = 100;
const MAX_TITLE_CHARACTERS = 256;
const NOT_COMPLETED: readonly string[] = ['not_planned', 'duplicate'];

const STATES: Readonly<Record<IssueState, { state: 'open' | 'closed'; state_reason?: 'completed' | 'not_planned' }>> = {
  open: { state: 'open' },
  completed: { state: 'closed', state_reason: 'completed' },
  'not-planned': { state: 'closed', state_reason: 'not_planned' },
};

/** The issues of a repository on GitHub. An App needs the permission *Issues: read and write* for them. */
export class GitHubIssues implements ForgeIssues {
  readonly #client: GitHubClient;
  readonly #labels: GitHubLabels;
  readonly #repository: { readonly owner: string; readonly repo: string };
  readonly #host: HostIssues;

  constructor(
    client: GitHubClient,
    repository: { readonly owner: string; readonly repo: string },
    labels: GitHubLabels,
  ) {
    this.#labels = labels;
    this.#client = client;
    this.#repository = repository;
    this.#host = {
      changedSince: (since, signal) => this.#changedSince(since, 'created', signal),
      create: (title, body, signal) => this.#create(title, body, signal),
      update: (number, change, signal) => this.#change(number, change, signal),
    };
  }

  open(wanted: NewIssue, signal: AbortSignal): Promise<Issue> {
    return openTopic(this.#host, wanted, signal);
  }

  find(topic: IssueTopic, signal: AbortSignal): Promise<Issue | undefined> {
    return findTopic(this.#host, topic, signal);
  }

  async get(number: number, signal: AbortSignal): Promise<Issue> {
    const issue = await this.#client.call(issueSchema, signal, ({ issues }, options) =>
      issues.get({ ...this.#repository, issue_number: number, ...options }),
    );
    if (isPull(issue))
      throw new SluiceError('NotFound', `${cleanAddress(issue.html_url)} is a pull request, and no issue`);
    return issueOf(issue, await readAccount(this.#client, signal));
  }

  async listUpdated(since: string, limit: number, signal: AbortSignal): Promise<readonly Issue[]> {
    const found = new Map<number, Issue>();
    for await (const issue of this.#changedSince(since, 'updated', signal)) {
      if (issue.topic !== undefined) found.set(issue.number, issue);
      if (found.size >= limit) break;
    }
    return [...found.values()];
  }

  async update(number: number, change: IssueChange, signal: AbortSignal): Promise<Issue> {
    const { topic } = change.body === undefined ? {} : await this.get(number, signal);
    const { body = '' } = change;
    return this.#change(number, topic === undefined ? change : { ...change, body: withTopic(topic, body) }, signal);
  }

  addLabels({ number, labels }: Issue, wanted: readonly string[], signal: AbortSignal): Promise<void> {
    return this.#labels.add(number, labels, wanted, signal);
  }

  async assign(
    { number, assignees }: Issue,
    users: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly { readonly name: string; readonly reason: string }[]> {
    const refused: { name: string; reason: string }[] = [];
    for (const name of users) {
      if (isAmong(assignees, name)) continue;
      let reason =
        'the host has not assigned it; only users who may read the repository can be assigned, and at most ten';
      try {
        const issue = await this.#client.call(issueSchema, signal, ({ issues }, options) =>
          issues.addAssignees({ ...this.#repository, issue_number: number, assignees: [name], ...options }),
        );
        // GitHub ignores users who cannot be assigned.
        if (
          isAmong(
            (issue.assignees ?? []).map(({ login }) => login),
            name,
          )
        )
          continue;
      } catch (error) {
        if (!isSluiceError(error) || !['InvalidInput', 'NotFound'].includes(error.code)) throw error;
        reason = error.message;
      }
      refused.push({ name, reason });
    }
    return refused;
  }

  /** The last ones first. By creation none is missed: one that changes meanwhile does not move. */
  async *#changedSince(since: string, sort: 'created' | 'updated', signal: AbortSignal): AsyncGenerator<Issue> {
    const account = await readAccount(this.#client, signal);
    const { login: creator } = account;
    const filter = {
      state: 'all',
      sort,
      direction: 'desc',
      since,
      ...(creator === undefined ? {} : { creator }),
    } as const;
    const pages = readPages({ size: PAGE, end: 'short page' }, (page, size) =>
      this.#client.call(issuesSchema, signal, ({ issues }, options) =>
        issues.listForRepo({ ...this.#repository, ...filter, per_page: size, page, ...options }),
      ),
    );
    const { owner, repo } = this.#repository;
    // Pull requests are in this list too.
    for await (const issue of bounded(`${owner}/${repo}`, pages)) if (!isPull(issue)) yield issueOf(issue, account);
  }

  async #create(title: string, body: string, signal: AbortSignal): Promise<Issue> {
    const wanted = { title: shorten(title, MAX_TITLE_CHARACTERS), body: shorten(body, MAX_COMMENT_CHARACTERS) };
    const created = await this.#client.call(issueSchema, signal, ({ issues }, options) =>
      issues.create({ ...this.#repository, ...wanted, ...options }),
    );
    return issueOf(created, { isOwn: () => true });
  }

  async #change(number: number, { title, body, state }: IssueChange, signal: AbortSignal): Promise<Issue> {
    const change = {
      ...(title === undefined ? {} : { title: shorten(title, MAX_TITLE_CHARACTERS) }),
      ...(body === undefined ? {} : { body: shorten(body, MAX_COMMENT_CHARACTERS) }),
      ...(state === undefined ? {} : STATES[state]),
    };
    const changed = await this.#client.call(issueSchema, signal, ({ issues }, options) =>
      issues.update({ ...this.#repository, issue_number: number, ...change, ...options }),
    );
    return issueOf(changed, await readAccount(this.#client, signal));
  }
}

function isPull({ pull_request: pull }: GitHubIssue): boolean {
  return pull !== undefined && pull !== null;
}

function issueOf(issue: GitHubIssue, account: Pick<Account, 'isOwn'>): Issue {
  const { number, html_url: url, title, user, labels, assignees, closed_at: closedAt, updated_at: updatedAt } = issue;
  const isCompleted = !NOT_COMPLETED.includes(issue.state_reason ?? '');
  return {
    ...{ number, url: cleanAddress(url), title, author: user?.login ?? '', updatedAt },
    state: issue.state === 'open' ? 'open' : isCompleted ? 'completed' : 'not-planned',
    ...readTopic(issue.body ?? '', account.isOwn(issue)),
    labels: labels.flatMap((label) => (typeof label === 'string' ? label : (label.name ?? []))),
    assignees: (assignees ?? []).map(({ login }) => login),
    ...(closedAt === undefined || closedAt === null ? {} : { closedAt }),
  };
}
