import { SluiceError } from '../../foundation/sluice-error.ts';
import { shorten } from '../../foundation/text/shorten.ts';
import { cleanAddress } from '../clean-address.ts';
import { MAX_COMMENT_CHARACTERS } from '../comments/topic-comment.ts';
import type { ForgeIssues, Issue, IssueChange, IssueTopic, NewIssue } from '../forge-issues.ts';
import type { ForgeHttp } from '../http/forge-http.ts';
import { bounded, findTopic, type HostIssues, openTopic, readTopic, withTopic } from '../issue-topics.ts';
import { readPages } from '../read-pages.ts';
import { isAmong } from '../same-name.ts';
import type { GiteaLabels } from './gitea-labels.ts';
import { type GiteaIssue, issueSchema, issuesSchema, ownUserSchema, usersSchema } from './gitea-schemas.ts';

const PAGE = 50;
const MAX_TITLE_CHARACTERS = 255;

/** The issues of a repository on Gitea or Forgejo. */
export class GiteaIssues implements ForgeIssues {
  readonly #http: ForgeHttp;
  /** Of the repository. */
  readonly #path: string;
  readonly #labels: GiteaLabels;
  readonly #host: HostIssues;

  constructor(http: ForgeHttp, path: string, labels: GiteaLabels) {
    this.#http = http;
    this.#path = path;
    this.#labels = labels;
    this.#host = {
      changedSince: (since, signal) => this.#changedSince(since, signal),
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
    const path = `${this.#path}/issues/${number}`;
    const issue = await this.#http.json(issueSchema, 'GET', path, { signal });
    if (issue.pull_request !== undefined && issue.pull_request !== null)
      throw new SluiceError('NotFound', `GET ${path}: it is a pull request, and no issue`);
    return issueOf(issue, await this.#login(signal));
  }

  async listUpdated(since: string, limit: number, signal: AbortSignal): Promise<readonly Issue[]> {
    const found = new Map<number, Issue>();
    for await (const issue of this.#changedSince(since, signal)) {
      if (issue.topic !== undefined) found.set(issue.number, issue);
    }
    // Gitea has no order by the last change.
    const sorted = [...found.values()].sort((one, other) => Date.parse(other.updatedAt) - Date.parse(one.updatedAt));
    return sorted.slice(0, limit);
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
    { number }: Issue,
    users: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly { readonly name: string; readonly reason: string }[]> {
    const { assignees: present } = await this.get(number, signal);
    const missing = users.filter((name) => !isAmong(present, name));
    if (missing.length === 0) return [];
    // Gitea has no better status than 500 for others.
    const path = `${this.#path}/assignees`;
    const possible = (await this.#http.json(usersSchema, 'GET', path, { signal })).map(({ login }) => login);
    const assignees = missing.filter((name) => isAmong(possible, name));
    // A request replaces the list.
    if (assignees.length > 0) await this.#patch(number, { assignees: [...present, ...assignees] }, signal);
    const reason = 'the host does not list it among the users whom issues of the repository can be assigned to';
    return missing.filter((name) => !assignees.includes(name)).map((name) => ({ name, reason }));
  }

  async #login(signal: AbortSignal): Promise<string> {
    return (await this.#http.json(ownUserSchema, 'GET', '/user', { signal })).login;
  }

  async *#changedSince(since: string, signal: AbortSignal): AsyncGenerator<Issue> {
    const login = await this.#login(signal);
    const from = encodeURIComponent(new Date(since).toISOString());
    const query = `state=all&type=issues&created_by=${encodeURIComponent(login)}&since=${from}`;
    const pages = readPages({ size: PAGE, end: 'empty page' }, (page, size) =>
      this.#http.json(issuesSchema, 'GET', `${this.#path}/issues?${query}&page=${page}&limit=${size}`, { signal }),
    );
    for await (const issue of bounded(this.#path, pages)) yield issueOf(issue, login);
  }

  async #create(title: string, body: string, signal: AbortSignal): Promise<Issue> {
    const wanted = { title: shorten(title, MAX_TITLE_CHARACTERS), body: shorten(body, MAX_COMMENT_CHARACTERS) };
    const created = await this.#http.json(issueSchema, 'POST', `${this.#path}/issues`, { body: wanted, signal });
    return issueOf(created, created.user?.login);
  }

  #change(number: number, { title, body, state }: IssueChange, signal: AbortSignal): Promise<Issue> {
    const change = {
      ...(title === undefined ? {} : { title: shorten(title, MAX_TITLE_CHARACTERS) }),
      ...(body === undefined ? {} : { body: shorten(body, MAX_COMMENT_CHARACTERS) }),
      ...(state === undefined ? {} : { state: state === 'open' ? 'open' : 'closed' }),
    };
    return this.#patch(number, change, signal);
  }

  async #patch(number: number, body: object, signal: AbortSignal): Promise<Issue> {
    const path = `${this.#path}/issues/${number}`;
    const changed = await this.#http.json(issueSchema, 'PATCH', path, { body, signal });
    return issueOf(changed, await this.#login(signal));
  }
}

function issueOf(issue: GiteaIssue, login: string | undefined): Issue {
  // What was imported from another host is none of the user who imported it.
  const author = (issue.original_author ?? '') === '' ? (issue.user?.login ?? '') : '';
  const { number, html_url: url, title, labels, assignees, closed_at: closedAt, updated_at: updatedAt } = issue;
  return {
    ...{ number, url: cleanAddress(url), title, author, updatedAt },
    state: issue.state === 'open' ? 'open' : 'completed',
    ...readTopic(issue.body ?? '', author !== '' && author === login),
    labels: (labels ?? []).map(({ name }) => name),
    assignees: (assignees ?? []).map((user) => user.login),
    ...(closedAt === undefined || closedAt === null ? {} : { closedAt }),
  };
}
