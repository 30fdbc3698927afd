import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { Gitea, type GiteaAddress, OWNER, startGitea } from '../../forge/support/gitea.ts';
import type { GiteaProgram } from '../../forge/support/gitea-program.ts';
import { type ApiRequest, type BenchHost, type HostAccess, REVIEWER, WEBHOOK_SECRET } from './bench-host.ts';
import { kindOf } from './request-kinds.ts';

const REQUEST = /"(?<method>[A-Z]+) \/api\/v1\/repos\/[^/ ]+\/(?<name>[^/ ?]+)(?<path>[^ ?]*)(?<query>[^ ]*) HTTP/;
const EVENTS = ['push', 'create', 'delete', 'pull_request', 'pull_request_review', 'pull_request_comment'];

const AGAIN_MS = 500;

/** A real Gitea on loopback. Its webhooks pass a relay that records when each was sent. */
export class GiteaHost implements BenchHost {
  readonly #server: Awaited<ReturnType<typeof startGitea>>;
  readonly #gitea: Gitea;
  readonly #relay: Server;
  readonly #tokens = new Map<string, string>();
  readonly #branches = new Map<number, string>();
  #name = '';
  #webhookUrl = '';
  #reviewed: ((at: number) => void) | undefined;

  private constructor(server: GiteaAddress & { close(): Promise<void> }) {
    this.#server = server;
    this.#gitea = new Gitea(server);
    this.#relay = createServer(async (request, response) => {
      const body = await buffer(request);
      if (String(request.headers['x-gitea-event-type']).startsWith('pull_request_review'))
        this.#reviewed?.(performance.now());
      const headers = Object.fromEntries(
        Object.entries(request.headers).filter(([name]) => name.startsWith('x-') || name === 'content-type'),
      ) as Record<string, string>;
      const passed = await fetch(this.#webhookUrl, { method: 'POST', headers, body }).catch(() => undefined);
      await passed?.arrayBuffer();
      response.writeHead(passed?.status ?? 502).end();
    });
  }

  static async start(program: GiteaProgram): Promise<GiteaHost> {
    const host = new GiteaHost(await startGitea(program));
    await new Promise<void>((resolve) => host.#relay.listen(0, '127.0.0.1', resolve));
    for (const user of ['sluice', REVIEWER]) {
      await host.#gitea.createUser(user);
      const scopes = ['write:repository', 'write:issue', 'read:user'];
      host.#tokens.set(user, await host.#gitea.createToken(user, 'bench', scopes));
    }
    return host;
  }

  get access(): HostAccess {
    const secret = { username: 'sluice', token: this.#tokens.get('sluice') ?? '' };
    return { secret, provider: 'gitea', api: `${this.#gitea.url}/api/v1` };
  }

  async createRepository(name: string, webhookUrl: string): Promise<string> {
    this.#name = name;
    this.#webhookUrl = webhookUrl;
    const address = await this.#gitea.createRepository(name);
    for (const user of ['sluice', REVIEWER]) await this.#gitea.addWriter(user, name);
    const url = `http://127.0.0.1:${(this.#relay.address() as AddressInfo).port}/`;
    await this.#gitea.api('POST', `${this.#path}/hooks`, {
      ...{ type: 'gitea', active: true, events: EVENTS },
      config: { url, secret: WEBHOOK_SECRET, content_type: 'json' },
    });
    return address;
  }

  async requests(): Promise<readonly ApiRequest[]> {
    const log = await readFile(join(this.#server.folder, 'log', 'access.log'), 'utf8');
    return log.split('\n').flatMap((line) => {
      const { method = '', name, path = '', query = '' } = REQUEST.exec(line)?.groups ?? {};
      if (name !== this.#name || !line.includes('"sluice"')) return [];
      return [{ kind: kindOf(method, path, query), isFree: false }];
    });
  }

  openPulls(): Promise<number> {
    return this.#count(`/pulls?state=open`);
  }

  labelled(): Promise<number> {
    return this.#count(`/issues?type=pulls&state=open&labels=package`);
  }

  /** The number of all entries of a list. Whole lists would keep Gitea busy. */
  async #count(list: string): Promise<number> {
    const credentials = Buffer.from(`${OWNER.username}:${OWNER.password}`).toString('base64');
    const response = await fetch(`${this.#gitea.url}/api/v1${this.#path}${list}&limit=1`, {
      headers: { authorization: `Basic ${credentials}` },
    });
    if (!response.ok) throw new Error(`${list}: ${response.status}`);
    await response.arrayBuffer();
    return Number(response.headers.get('x-total-count'));
  }

  async review(number: number, verdict: 'approve' | 'request-changes'): Promise<number> {
    const event = verdict === 'approve' ? 'APPROVED' : 'REQUEST_CHANGES';
    if (verdict === 'request-changes') {
      const { head } = (await this.#gitea.api('GET', `${this.#path}/pulls/${number}`)) as { head: { ref: string } };
      this.#branches.set(number, head.ref);
    }
    const sent = Promise.withResolvers<number>();
    this.#reviewed = sent.resolve;
    const { ok, text } = await this.#press(`pulls/${number}/reviews`, { event, body: event });
    if (!ok) throw new Error(`review of ${number}: ${text}`);
    // Approvals are sent at the same time, and nothing is measured of each.
    return verdict === 'approve' ? performance.now() : sent.promise;
  }

  async merge(number: number): Promise<void> {
    for (;;) {
      const { ok, text } = await this.#press(`pulls/${number}/merge`, { Do: 'squash' });
      if (ok) return;
      // It first computes whether there is a conflict.
      if (!/try again later/i.test(text)) throw new Error(`merge of ${number}: ${text}`);
      await delay(AGAIN_MS);
    }
  }

  /** As the reviewer does with a button. */
  async #press(path: string, body: object): Promise<{ readonly ok: boolean; readonly text: string }> {
    const response = await fetch(`${this.#gitea.url}/api/v1${this.#path}/${path}`, {
      method: 'POST',
      headers: { authorization: `token ${this.#tokens.get(REVIEWER)}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { ok: response.ok, text: `${response.status} ${await response.text()}` };
  }

  async stateOf(number: number): Promise<string | undefined> {
    const path = `${this.#path}/commits/${encodeURIComponent(this.#branches.get(number) ?? '')}/status`;
    const { statuses } = (await this.#gitea.api('GET', path)) as {
      statuses: { context: string; status: string }[] | null;
    };
    return statuses?.find(({ context }) => context === 'sluice/ready')?.status;
  }

  problems(): readonly string[] {
    return [];
  }

  async close(): Promise<void> {
    this.#relay.closeAllConnections();
    await new Promise((resolve) => this.#relay.close(resolve));
    await this.#server.close();
  }

  get #path(): string {
    return `/repos/${OWNER.username}/${this.#name}`;
  }
}
