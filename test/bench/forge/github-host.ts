import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type GitServer, startGitServer } from '../../support/git/git-server.ts';
import type { GitHubRepository, Pull } from '../../support/github/github-repository.ts';
import { APP, GitHubServer } from '../../support/github/github-server.ts';
import { GitHubWebhooks } from '../../support/github/github-webhooks.ts';
import { type ApiRequest, type BenchHost, type HostAccess, REVIEWER, WEBHOOK_SECRET } from './bench-host.ts';
import { kindOf } from './request-kinds.ts';

const PATH = /^\/api\/v3\/repos\/[^/]+\/(?<name>[^/?]+)(?<path>[^?]*)(?<query>.*)$/;
const FOLLOW_MS = 20;

/** The checked server, over HTTP, with the webhooks of an App. Sluice is the App. */
export class GitHubHost implements BenchHost {
  readonly #server = new GitHubServer();
  #git: GitServer | undefined;
  #repository: GitHubRepository | undefined;
  #webhooks: GitHubWebhooks | undefined;
  #token = '';
  #sentAt = 0;
  readonly #merges: boolean;

  private constructor(merges: boolean) {
    this.#merges = merges;
  }

  /** `merges`: whether pull requests are merged on it. */
  static async start(merges: boolean): Promise<GitHubHost> {
    const host = new GitHubHost(merges);
    await host.#server.listen();
    host.#git = await startGitServer({
      root: host.#server.folder,
      afterRequest: (url) => {
        if (url.endsWith('/git-receive-pack')) host.#webhooks?.reportPush('refs/heads/proposed/x');
      },
    });
    host.#token = host.#server.createToken(REVIEWER);
    host.#server.after = (request) => host.#webhooks?.report(request);
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
    // As GitHub reports until it has computed it; here each response would start a process of Git for it, and only merges need it.
    this.#repository.isComputing = !this.#merges;
    mkdirSync(join(this.#server.folder, owner));
    symlinkSync(this.#repository.gitDir, join(this.#server.folder, owner, `${name}.git`));
    const page = `${this.#git?.url}/${this.#fullName}`;
    this.#webhooks = new GitHubWebhooks({
      ...{ repository: this.#repository, page, url: webhookUrl, secret: WEBHOOK_SECRET },
      onSend: (event) => {
        if (event === 'pull_request_review') this.#sentAt = performance.now();
      },
    });
    return `${page}.git`;
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
    await this.#press('POST', `pulls/${number}/reviews`, { event, body: event });
    return this.#sentAt;
  }

  merge(number: number): Promise<void> {
    return this.#press('PUT', `pulls/${number}/merge`, { merge_method: 'squash' });
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

  /** As the reviewer does with a button. */
  async #press(method: string, path: string, body: object): Promise<void> {
    const response = await fetch(`${this.#server.api}/repos/${this.#fullName}/${path}`, {
      ...{ method, headers: { authorization: `Bearer ${this.#token}` }, body: JSON.stringify(body) },
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
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
}
