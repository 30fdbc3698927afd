import { createHmac, randomUUID } from 'node:crypto';
import { mkdirSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type GitServer, startGitServer } from '../../support/git/git-server.ts';
import type { GitHubRepository, Pull } from '../../support/github/github-repository.ts';
import { APP, type GitHubRequest, GitHubServer } from '../../support/github/github-server.ts';
import { type ApiRequest, type BenchHost, type HostAccess, REVIEWER, WEBHOOK_SECRET } from './bench-host.ts';
import { kindOf } from './request-kinds.ts';

const PATH = /^\/api\/v3\/repos\/[^/]+\/(?<name>[^/?]+)(?<path>[^?]*)(?<query>.*)$/;
/** Until a push is reported, which the server has executed by then. */
const PUSH_MS = 50;
const FOLLOW_MS = 20;

interface Payload {
  readonly action?: string;
  readonly repository?: object;
  readonly pull_request?: object;
  readonly check_run?: object;
}

const require = createRequire(import.meta.url);
/** As GitHub documents them. */
const documented = require('@octokit/webhooks-examples') as readonly {
  readonly name: string;
  readonly examples: readonly Payload[];
}[];

/** Webhooks for requests that have an effect, as GitHub sends them: name and action of the event. */
const EVENTS: readonly (readonly [RegExp, string, string])[] = [
  [/^POST \/pulls$/, 'pull_request', 'opened'],
  [/^PATCH \/(pulls|issues)\/N$/, 'pull_request', 'edited'],
  [/^POST \/issues\/N\/labels$/, 'pull_request', 'labeled'],
  [/^POST \/pulls\/N\/requested_reviewers$/, 'pull_request', 'review_requested'],
  [/^POST \/pulls\/N\/reviews$/, 'pull_request_review', 'submitted'],
  [/^PUT \/pulls\/N\/merge$/, 'pull_request', 'closed'],
  [/^POST \/issues\/N\/comments$/, 'issue_comment', 'created'],
  [/^POST \/check-runs$/, 'check_run', 'created'],
  [/^PATCH \/check-runs\/N$/, 'check_run', 'completed'],
];

/** The checked server, over HTTP, with the webhooks of an App. Sluice is the App. */
export class GitHubHost implements BenchHost {
  readonly #server = new GitHubServer();
  #git: GitServer | undefined;
  #repository: GitHubRepository | undefined;
  #webhookUrl = '';
  #token = '';
  #sentAt = 0;

  static async start(): Promise<GitHubHost> {
    const host = new GitHubHost();
    await host.#server.listen();
    host.#git = await startGitServer({
      root: host.#server.folder,
      beforeRequest: (url) => {
        if (url.endsWith('/git-receive-pack')) setTimeout(() => host.#reportPush(), PUSH_MS);
      },
    });
    host.#token = host.#server.createToken(REVIEWER);
    host.#server.after = (request) => host.#report(request);
    return host;
  }

  get access(): HostAccess {
    const app = { githubAppID: `${APP.id}`, githubAppInstallationID: `${APP.installation}` };
    const secret = { ...app, githubAppPrivateKey: this.#server.privateKey, username: 'x', token: 'x' };
    return { secret, provider: 'github', api: this.#server.api };
  }

  async createRepository(name: string, webhookUrl: string): Promise<string> {
    // GitHub limits an installation, of which each owner has one.
    const owner = `owner-of-${name}`;
    this.#repository = this.#server.createRepository(owner, name, [owner, REVIEWER, APP.user]);
    this.#repository.followMs = FOLLOW_MS;
    // As GitHub reports until it has computed it; here each response would start a process of Git for it, and nothing in the benchmark needs it.
    this.#repository.isComputing = true;
    mkdirSync(join(this.#server.folder, owner));
    symlinkSync(this.#repository.gitDir, join(this.#server.folder, owner, `${name}.git`));
    this.#webhookUrl = webhookUrl;
    return `${this.#git?.url}/${this.#fullName}.git`;
  }

  async requests(): Promise<readonly ApiRequest[]> {
    return this.#server.requests.flatMap(({ method, url, headers, status }) => {
      const own = headers['user-agent']?.startsWith('sluice') === true;
      if (url === '/api/graphql') return own ? [{ kind: 'POST /graphql', isFree: false }] : [];
      const { name, path = '', query = '' } = PATH.exec(url)?.groups ?? {};
      if (!own || name !== this.#repository?.name) return [];
      return [{ kind: kindOf(method, path, query), isFree: status === 304 }];
    });
  }

  async openPulls(): Promise<number> {
    this.#repository?.follow();
    return this.#open().length;
  }

  async labelled(): Promise<number> {
    return this.#open().filter(({ labels }) => labels.has('package')).length;
  }

  async review(number: number, verdict: 'approve' | 'request-changes'): Promise<number> {
    const event = verdict === 'approve' ? 'APPROVE' : 'REQUEST_CHANGES';
    const address = `${this.#server.api}/repos/${this.#fullName}/pulls/${number}/reviews`;
    const response = await fetch(address, {
      ...{ method: 'POST', headers: { authorization: `Bearer ${this.#token}` } },
      body: JSON.stringify({ event, body: event }),
    });
    if (!response.ok) throw new Error(`review of ${number}: ${response.status} ${await response.text()}`);
    await response.arrayBuffer();
    return this.#sentAt;
  }

  async stateOf(number: number): Promise<string | undefined> {
    this.#repository?.follow();
    const pull = this.#find(number);
    const run = this.#repository?.runs.findLast(
      (one) => one.commit === pull?.head.commit && one.name === 'sluice/ready',
    );
    return run?.conclusion ?? undefined;
  }

  problems(): readonly string[] {
    return this.#server.problems;
  }

  async close(): Promise<void> {
    await this.#git?.close();
    await this.#server.close();
  }

  get #fullName(): string {
    return `${this.#repository?.owner}/${this.#repository?.name}`;
  }

  #open(): Pull[] {
    return this.#repository?.pulls.filter(({ closedAt }) => closedAt === undefined) ?? [];
  }

  #find(number: number): Pull | undefined {
    return this.#repository?.pulls.find((one) => one.number === number);
  }

  /** What webhooks show of a pull request. */
  #shown(number: number | undefined) {
    const pull = this.#find(number ?? 0);
    const repo = { id: this.#repository?.id };
    return {
      ...{ number, updated_at: pull?.updatedAt, state: pull?.closedAt === undefined ? 'open' : 'closed' },
      ...{ head: { ref: pull?.head.branch, sha: pull?.head.commit, repo }, base: { ref: pull?.base, repo } },
    };
  }

  #report({ method, url, status }: GitHubRequest): void {
    const { name, path = '', query = '' } = PATH.exec(url)?.groups ?? {};
    if (method === 'GET' || status >= 300 || name !== this.#repository?.name) return;
    const kind = kindOf(method, path, query);
    const [, event, action] = EVENTS.find(([pattern]) => pattern.test(kind)) ?? [];
    const number = Number(/^\/(?:pulls|issues)\/(\d+)/.exec(path)?.[1] ?? this.#repository?.pulls.length);
    if (event !== undefined) this.#send(event, action, number);
  }

  #reportPush(): void {
    this.#send('push', undefined, undefined);
  }

  #send(event: string, action: string | undefined, number: number | undefined): void {
    const url = `${this.#git?.url}/${this.#fullName}`;
    const examples = documented.find(({ name }) => name === event)?.examples ?? [];
    const example = examples.find((one) => one.action === action) ?? examples[0] ?? {};
    const body = JSON.stringify({
      ...{ ...example, repository: { ...example.repository, html_url: url } },
      ...(example.pull_request === undefined
        ? {}
        : { pull_request: { ...example.pull_request, ...this.#shown(number) } }),
      ...(event === 'push' ? { ref: 'refs/heads/proposed/x' } : {}),
      delivery: randomUUID(),
    });
    const signature = `sha256=${createHmac('sha256', WEBHOOK_SECRET).update(body).digest('hex')}`;
    const headers = { 'content-type': 'application/json', 'x-github-event': event, 'x-hub-signature-256': signature };
    if (event === 'pull_request_review') this.#sentAt = performance.now();
    // Sluice may have ended.
    fetch(this.#webhookUrl, { method: 'POST', headers, body }).then(
      (response) => response.arrayBuffer(),
      () => undefined,
    );
  }
}
