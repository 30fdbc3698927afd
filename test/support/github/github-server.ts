import { createHash, createPublicKey, generateKeyPairSync, type KeyPairKeyObjectResult, verify } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answerGraphql } from './github-graphql.ts';
import { GitHubJson } from './github-json.ts';
import { GitHubRepository, Invalid, nextId } from './github-repository.ts';
import { Failure, type Result, type Route } from './github-route.ts';
import { ROUTES } from './github-routes.ts';
import { OpenApi } from './openapi.ts';

const DOCUMENTATION = { documentation_url: 'https://docs.github.com/rest', status: '' };
const TOKENS_PATH = '/app/installations/{installation_id}/access_tokens';
const INSTALLATION_PATH = '/repos/{owner}/{repo}/installation';
const USER_PATH = '/user';
const HOUR_MS = 3_600_000;
let api: OpenApi | undefined;
/** Of the App on every server: to generate them takes long. */
let keys: KeyPairKeyObjectResult | undefined;

/** The App of the tests, and its only installation. */
export const APP = { id: 4242, installation: 77, user: 'sluice[bot]' } as const;
/** What the installation was granted. */
export const GRANTED: Readonly<Record<string, string>> = {
  ...{ metadata: 'read', contents: 'write', checks: 'write', pull_requests: 'write', issues: 'write', members: 'read' },
};

export interface GitHubRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
  status: number;
}

/** A response in place of the proper one, before or after the effect of the request; `hang` sends none, `cut` breaks the connection. */
export type Fault =
  | 'hang'
  | 'cut'
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
      readonly afterEffect?: boolean;
    };

interface Identity {
  readonly user: string;
  readonly app?: number;
  /** By permission: `read` or `write`. */
  readonly permissions: Readonly<Record<string, string>> | 'read' | 'write';
  /** Names of repositories, of a token of an installation. */
  readonly repositories?: readonly string[];
  readonly until?: number;
}

/**
 * A GitHub that keeps what is written, with the refs of a real Git repository. Every request and response is checked against GitHub's
 * published description of its API; what does not fit is in `problems`.
 */
export class GitHubServer {
  readonly requests: GitHubRequest[] = [];
  readonly problems: string[] = [];
  /** The permissions that the App has needed. */
  readonly used = new Map<string, string>();
  /** Returns a fault for a request. */
  fault: (request: GitHubRequest) => Fault | undefined = () => undefined;
  /** Is called after each response. */
  after: (request: GitHubRequest) => void = () => undefined;
  /** Numbers of pull requests that a query of GraphQL fails for, with an error that names its place. */
  readonly unreturned = new Set<number>();
  granted = GRANTED;
  /** The private key of the App, PEM. */
  readonly privateKey: string;
  readonly folder: string;
  readonly #publicKey: string;
  readonly #api: OpenApi;
  readonly #server: Server;
  readonly #identities = new Map<string, Identity>();
  readonly #repositories: GitHubRepository[] = [];
  #json: GitHubJson | undefined;
  #tokens = 0;

  constructor() {
    api ??= new OpenApi();
    this.#api = api;
    this.folder = mkdtempSync(join(tmpdir(), 'sluice-github-'));
    keys ??= generateKeyPairSync('rsa', { modulusLength: 2048 });
    const { privateKey, publicKey } = keys;
    this.privateKey = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
    this.#publicKey = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.#json = new GitHubJson(this.#api, this.url);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The address of the API, as GitHub Enterprise Server has it. */
  get api(): string {
    return `${this.url}/api/v3`;
  }

  createRepository(owner: string, name: string, writers: readonly string[]): GitHubRepository {
    const repository = new GitHubRepository(this.folder, owner, name, writers);
    repository.commit('main');
    this.#repositories.push(repository);
    return repository;
  }

  fork(repository: GitHubRepository, user: string): GitHubRepository {
    const fork = repository.fork(this.folder, user);
    this.#repositories.push(fork);
    return fork;
  }

  /** A token of a user. */
  createToken(user: string, permissions: 'read' | 'write' = 'write'): string {
    this.#tokens += 1;
    const token = `ghp_${createHash('sha256').update(`${user}-${this.#tokens}`).digest('hex').slice(0, 36)}`;
    this.#identities.set(token, { user, permissions });
    return token;
  }

  /** Responds to a request of a user without a connection, at once and without a fault. */
  perform(token: string, method: string, path: string, body?: unknown): { status: number; body: unknown } {
    const headers = { authorization: `Bearer ${token}` };
    const { status, body: text } = this.#answer({ method, url: `/api/v3${path}`, headers, body, status: 0 });
    return { status, body: text === '' ? undefined : JSON.parse(text) };
  }

  /** Checks the payload of a webhook as it checks requests. */
  checkWebhook(event: string, payload: { readonly action?: string }): void {
    const problems = this.#api.webhookProblems(event, payload);
    this.problems.push(...problems.map((problem) => `webhook ${event}: ${problem}`));
  }

  /** Ends the tokens of the App, as a suspension or a new key does. */
  revokeInstallationTokens(): void {
    for (const [token, { app }] of this.#identities) if (app !== undefined) this.#identities.delete(token);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const text = Buffer.concat(parts).toString();
    const entry: GitHubRequest = { method, url, headers, body: text === '' ? undefined : JSON.parse(text), status: 0 };
    this.requests.push(entry);
    const fault = this.fault(entry);
    if (fault === 'hang') return;
    if (fault === 'cut') {
      response.destroy();
      return;
    }
    const own = fault === undefined || fault.afterEffect === true ? this.#answer(entry) : undefined;
    const { status, headers: sent = {}, body } = fault ?? own ?? { status: 500 };
    entry.status = status;
    response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...sent });
    response.end(status === 304 ? '' : body);
    this.after(entry);
  }

  #answer(request: GitHubRequest): { status: number; headers?: Record<string, string>; body: string } {
    const { method, headers } = request;
    const { pathname, searchParams: query } = new URL(request.url, this.url);
    const path = pathname.replace(/^\/api\/v3/, '');
    if (method === 'POST' && pathname === '/api/graphql') return this.#answerGraphql(request);
    const found = findRoute(method, path);
    const { template } = found;
    let status: number;
    let body: unknown;
    let more: Record<string, string> = {};
    try {
      const problems = this.#api.requestProblems(method, template, query, request.body);
      this.problems.push(...problems.map((problem) => `${method} ${template}: ${problem}`));
      const result = this.#handle(found, request, query);
      ({ body } = result);
      status = result.status ?? 200;
      const [size, page] = ['per_page', 'page'].map((name) => Number(query.get(name) ?? 1));
      if ((result.entries?.length ?? 0) > (size ?? 1) * (page ?? 1)) {
        const next = new URLSearchParams([...query, ['page', String((page ?? 1) + 1)]]);
        more.link = `<${this.url}${pathname}?${next}>; rel="next"`;
      }
    } catch (error) {
      if (error instanceof Invalid) {
        status = 422;
        body = { message: error.message, errors: error.errors, ...DOCUMENTATION, status: '422' };
      } else if (error instanceof Failure) {
        status = error.status;
        body = { message: error.message, ...DOCUMENTATION, status: String(status) };
        more = { ...error.headers };
      } else throw error;
    }
    const problems = this.#api.responseProblems(method, template, status, body);
    this.problems.push(...problems.map((problem) => `response ${status} to ${method} ${template}: ${problem}`));
    const text = JSON.stringify(body) ?? '';
    if (method !== 'GET' || status !== 200) return { status, headers: more, body: text };
    const etag = `W/"${createHash('sha256').update(text).digest('hex')}"`;
    if (headers['if-none-match'] === etag) return { status: 304, headers: { etag }, body: '' };
    return { status, headers: { ...more, etag }, body: text };
  }

  #answerGraphql({ headers, body }: GitHubRequest): { status: number; body: string } {
    const token = /^(?:bearer|token) (.+)$/i.exec(headers.authorization ?? '')?.[1] ?? '';
    const identity = this.#identities.get(token);
    if (identity === undefined) return { status: 401, body: JSON.stringify({ message: 'Bad credentials' }) };
    if (identity.app !== undefined && !this.used.has('pull_requests')) this.used.set('pull_requests', 'read');
    const visible = this.#repositories.filter(({ name }) => identity.repositories?.includes(name) ?? true);
    for (const repository of visible) repository.follow();
    const request = body as Parameters<typeof answerGraphql>[1];
    const answer = answerGraphql(visible, request, this.problems, this.url, this.unreturned);
    return { status: 200, body: JSON.stringify(answer) };
  }

  #handle({ template, values, route }: Found, { headers, body }: GitHubRequest, query: URLSearchParams): Result {
    const token = /^(?:bearer|token) (.+)$/i.exec(headers.authorization ?? '')?.[1] ?? '';
    if (template === TOKENS_PATH || template === INSTALLATION_PATH)
      return this.#handleApp(template, values, token, body);
    const identity = this.#identities.get(token);
    if (identity === undefined || (identity.until ?? Number.POSITIVE_INFINITY) < Date.now())
      throw new Failure(401, 'Bad credentials');
    const { user, app, repositories, permissions } = identity;
    if (template === USER_PATH) {
      if (app !== undefined) throw new Failure(403, 'Resource not accessible by integration');
      return { body: this.#form.ownUser(user) };
    }
    // The tests have one team for each repository of an organization.
    const ofTeam = this.#repositories.findLast(
      ({ owner, members }) => owner === values.org && members.has(values.team_slug ?? ''),
    );
    const repository = values.org === undefined ? this.#find(values.owner, values.repo) : ofTeam;
    const mayRead = repositories?.includes(repository?.name ?? '') ?? repository?.writers.has(user);
    if (repository === undefined || (mayRead !== true && !isFork(repository, user, this.#repositories)))
      throw new Failure(404, 'Not Found');
    const needs = typeof route.needs === 'string' ? route.needs : route.needs({ repository, path: values });
    const [permission = '', access = ''] = needs.split(':');
    if (app !== undefined && this.used.get(permission) !== 'write') this.used.set(permission, access);
    // Every token of an App has it.
    const all = typeof permissions === 'string' ? undefined : { metadata: 'read', ...permissions };
    const given = all === undefined ? permissions : all[permission as keyof typeof all];
    if (permission === 'checks' && access === 'write' && app === undefined)
      throw new Failure(403, 'You must authenticate via a GitHub App.');
    // Every token may read that.
    const isMissing = permission !== 'metadata' && given === undefined;
    if (isMissing || (access === 'write' && given !== 'write')) {
      const what = app === undefined ? 'personal access token' : 'integration';
      const needed = { 'x-accepted-github-permissions': `${permission}=${access}` };
      throw new Failure(403, `Resource not accessible by ${what}`, needed);
    }
    repository.follow();
    const repositoryOf = (owner: string) => this.#find(owner, repository.name);
    const content = (body ?? {}) as Record<string, unknown>;
    return route.handle({ repository, path: values, query, body: content, user, app, json: this.#form, repositoryOf });
  }

  /** What an App may do as itself. */
  #handleApp(template: string, values: Readonly<Record<string, string>>, jwt: string, body: unknown): Result {
    this.#checkJwt(jwt);
    if (template === INSTALLATION_PATH) {
      if (this.#find(values.owner, values.repo) === undefined) throw new Failure(404, 'Not Found');
      return { body: this.#form.installation(APP.installation, APP.id) };
    }
    if (values.installation_id !== String(APP.installation)) throw new Failure(404, 'Not Found');
    const { repositories = [], permissions = this.granted } = (body ?? {}) as {
      repositories?: string[];
      permissions?: Record<string, string>;
    };
    const repository = this.#repositories.find(({ name }) => repositories.includes(name));
    const isGranted = Object.entries(permissions).every(
      ([name, access]) => this.granted[name] === 'write' || this.granted[name] === access,
    );
    if (repository === undefined || !isGranted)
      throw new Failure(422, 'The permissions requested are not granted to this installation.');
    const token = `ghs_${createHash('sha256').update(String(nextId())).digest('hex').slice(0, 36)}`;
    const until = Date.now() + HOUR_MS;
    this.#identities.set(token, { user: APP.user, app: APP.id, permissions, repositories, until });
    const end = new Date(until).toISOString().replace(/\.\d+Z$/, 'Z');
    return { status: 201, body: this.#form.installationToken(token, end, permissions, repository) };
  }

  #checkJwt(jwt: string): void {
    const [head = '', claims = '', signature = ''] = jwt.split('.');
    const key = createPublicKey(this.#publicKey);
    const isSigned = verify('RSA-SHA256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url'));
    if (!isSigned) throw new Failure(401, 'A JSON web token could not be decoded');
    const { iss, iat, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, number>;
    const now = Date.now() / 1000;
    const isTimely = iat !== undefined && exp !== undefined && iat <= now && exp > now && exp <= now + 600;
    if (iss !== APP.id || !isTimely)
      throw new Failure(401, "'Issued at' claim ('iat') or 'Expiration time' is not valid");
  }

  get #form(): GitHubJson {
    if (this.#json === undefined) throw new Error('the server does not listen yet');
    return this.#json;
  }

  #find(owner: string | undefined, name: string | undefined): GitHubRepository | undefined {
    return this.#repositories.find((repository) => repository.owner === owner && repository.name === name);
  }
}

interface Found {
  readonly template: string;
  readonly values: Readonly<Record<string, string>>;
  readonly route: Route;
}

const TEMPLATES = [...Object.keys(ROUTES), `POST ${TOKENS_PATH}`, `GET ${INSTALLATION_PATH}`, `GET ${USER_PATH}`].map(
  (key) => {
    const [method = '', template = ''] = key.split(' ');
    const pattern = template.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)');
    return { key, method, template, pattern: new RegExp(`^${pattern}$`) };
  },
);
const APP_ROUTE: Route = { needs: '', handle: () => ({ body: undefined }) };

function findRoute(method: string, path: string): Found {
  for (const { key, template, pattern, ...one } of TEMPLATES) {
    const match = one.method === method ? pattern.exec(path) : null;
    if (match === null) continue;
    const decoded = Object.fromEntries(
      Object.entries(match.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]),
    );
    return { template, values: decoded, route: ROUTES[key] ?? APP_ROUTE };
  }
  throw new Error(`the test server has no ${method} ${path}`);
}

/** Users read what they forked. */
function isFork({ name }: GitHubRepository, user: string, all: readonly GitHubRepository[]): boolean {
  return all.some((one) => one.name === name && one.owner === user);
}
