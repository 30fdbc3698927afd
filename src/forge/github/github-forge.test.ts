import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { describeForge } from '../../../test/support/forge/forge-conformance.ts';
import type { ForgeHost } from '../../../test/support/forge/forge-host.ts';
import { countingBudgets, openGitHub } from '../../../test/support/github/github-host.ts';
import { APP, type Fault, GitHubServer, GRANTED } from '../../../test/support/github/github-server.ts';
import { isSluiceError, type SluiceError } from '../../foundation/sluice-error.ts';
import { DEFAULT_NETWORK, PUBLIC_NETWORK } from '../../git/network/git-network.ts';
import type { Check, ForgeErrorDetails } from '../forge.ts';
import type { GitHubCredentials } from './github-client.ts';
import { GitHubForge } from './github-forge.ts';

const OWNER = 'acme';
const PAGE_SIZE = 100;
const NO_SIGNAL = new AbortController().signal;

const server = new GitHubServer();
beforeAll(() => server.listen());
afterAll(async () => {
  await server.close();
  expect(server.problems).toEqual([]);
});
/** Access by permission in the table of the page that users create their App by. */
function documentedPermissions(): Record<string, string> {
  const page = readFileSync(new URL('../../../docs/github-app.md', import.meta.url), 'utf8');
  const [, table = ''] = /\n\| permission of a repository \|.*\n(?:\|[-|]+\n)((?:\|.*\n)+)/.exec(page) ?? [];
  const rows = [...table.matchAll(/^\| ([A-Z][A-Za-z ]+) \| ([^|]+) \|(.*)/gm)];
  return Object.fromEntries(
    rows.map(([, name = '', access = '', where = '']) => [
      name.toLowerCase().replaceAll(' ', '_'),
      access.includes('write') || where.includes('*Read and write*') ? 'write' : 'read',
    ]),
  );
}

const open = (kind: 'app' | 'user') => openGitHub(server, kind);

describeForge('pull requests of GitHub, as an App', {
  open: () => openGitHub(server, 'app', countingBudgets()),
  pageSize: PAGE_SIZE,
});

/** The SluiceError that a call rejects with, which contains no secret. */
async function failure(
  call: Promise<unknown>,
  secrets: readonly string[] = [],
): Promise<SluiceError<ForgeErrorDetails>> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isSluiceError(error)) throw error ?? new Error('it was expected to fail');
  const text = `${error.message} ${error.stack} ${JSON.stringify(error.details)}`;
  for (const secret of secrets) expect(text).not.toContain(secret);
  return error as SluiceError<ForgeErrorDetails>;
}

const wanted = { head: 'proposed/shop/v1', base: 'main', title: 'shop v1', body: 'text' };

describe('failures of GitHub', () => {
  const opened: ForgeHost[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((host) => host.close()));
  });

  async function start(kind: 'app' | 'user' = 'user') {
    const host = await open(kind);
    opened.push(host);
    await host.commit('proposed/shop/v1');
    return host;
  }

  /** Fails the requests with a method, as often as given. */
  function failOn(method: string, fault: Fault, times = Number.POSITIVE_INFINITY): void {
    let left = times;
    server.fault = (request) => {
      if (request.method !== method || request.url.includes('/app/') || left === 0) return undefined;
      left -= 1;
      return fault;
    };
  }

  test.each<[string, Fault, string, ForgeErrorDetails]>([
    [
      'a secondary limit',
      { status: 403, body: '{"message":"You have exceeded a secondary rate limit. Please wait a few minutes"}' },
      'TooManyRequests',
      { status: 403, retryAfterMs: 60_000 },
    ],
    [
      'a secondary limit with a time',
      { status: 403, headers: { 'retry-after': '7' }, body: '{"message":"You have exceeded a secondary rate limit"}' },
      'TooManyRequests',
      { status: 403, retryAfterMs: 7000 },
    ],
    [
      'status 429',
      { status: 429, headers: { 'retry-after': '12' }, body: '{}' },
      'TooManyRequests',
      { status: 429, retryAfterMs: 12_000 },
    ],
    ['status 502', { status: 502, body: '<html>Unicorn!</html>' }, 'Unavailable', { status: 502 }],
    ['status 500', { status: 500, body: '' }, 'Unavailable', { status: 500 }],
    ['status 409', { status: 409, body: '{"message":"Conflict"}' }, 'Conflict', { status: 409 }],
    [
      'a redirect',
      { status: 301, headers: { location: 'http://127.0.0.1:1/elsewhere' }, body: '{"message":"Moved Permanently"}' },
      'Refused',
      { status: 301 },
    ],
  ])('%s is classified, and not repeated', async (_what, fault, code, details) => {
    const { forge } = await start();
    failOn('GET', fault);
    const before = server.requests.length;
    const error = await failure(forge.listOpen('main', 10, NO_SIGNAL));
    expect([error.code, error.details]).toEqual([code, { retryAfterMs: undefined, ...details }]);
    expect(server.requests.length).toBe(before + 1);
  });

  test('the primary limit says when it ends', async () => {
    const { forge } = await start();
    const reset = Math.ceil(Date.now() / 1000) + 90;
    const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(reset) };
    failOn('GET', { status: 403, headers, body: '{"message":"API rate limit exceeded"}' });
    const { code, details } = await failure(forge.listOpen('main', 10, NO_SIGNAL));
    expect(code).toBe('TooManyRequests');
    expect(details?.retryAfterMs).toBeGreaterThan(80_000);
    expect(details?.retryAfterMs).toBeLessThanOrEqual(91_000);
  });

  test('a request that failed after its effect is safe to repeat', async () => {
    const { forge, checks, commit } = await start('app');
    failOn('POST', { status: 500, body: '{}', afterEffect: true }, 1);
    expect((await failure(forge.open(wanted, NO_SIGNAL))).code).toBe('Unavailable');
    const pull = await forge.open({ ...wanted, title: 'again' }, NO_SIGNAL);
    expect(pull.title).toBe('shop v1');
    expect(await forge.listOpen('main', 10, NO_SIGNAL)).toEqual([pull]);

    const head = await commit('proposed/shop/v1');
    const check: Check = { name: 'sluice/ready', state: 'pending', title: 'waiting' };
    failOn('POST', { status: 502, body: '', afterEffect: true }, 1);
    expect((await failure(forge.setChecks(head, [check], NO_SIGNAL))).code).toBe('Unavailable');
    await forge.setChecks(head, [check], NO_SIGNAL);
    expect(await checks(head)).toEqual({ current: [check], written: 1 });
    failOn('POST', { status: 500, body: '', afterEffect: true }, 1);
    expect((await failure(forge.addLabels(pull, ['sluice'], NO_SIGNAL))).code).toBe('Unavailable');
    await forge.addLabels(pull, ['sluice'], NO_SIGNAL);
    expect((await forge.get(pull.number, NO_SIGNAL)).labels).toEqual(['sluice']);
  });

  test('a response that never comes ends with the time of a request', async () => {
    const { connectWith } = await start();
    const forge = connectWith({ timeoutMs: 300 });
    failOn('GET', 'hang');
    const error = await failure(forge.listOpen('main', 10, NO_SIGNAL));
    expect([error.code, error.message]).toEqual(['Timeout', expect.stringContaining('no response within 0.3 s')]);
    const reason = new Error('the caller ends');
    await expect(forge.listOpen('main', 10, abortSoon(reason))).rejects.toBe(reason);
  });

  test('a connection that breaks is unavailable', async () => {
    const { forge } = await start();
    failOn('GET', 'cut');
    expect((await failure(forge.listOpen('main', 10, NO_SIGNAL))).code).toBe('Unavailable');
  });

  test.each([
    ['no JSON', '<html></html>', /does not have the documented form/],
    ['of another form', '[{"number":"1"}]', /does not have the documented form: 0\.number/],
    ['empty', '', /does not have the documented form/],
  ])('a response that is %s is corrupt', async (_what, body, message) => {
    const { forge } = await start();
    failOn('GET', { status: 200, body });
    const error = await failure(forge.listOpen('main', 10, NO_SIGNAL));
    expect([error.code, error.message]).toEqual(['Corrupt', expect.stringMatching(message)]);
  });

  test('a pull request that is too long hides no other one', async () => {
    const { forge, commit, repository } = await start();
    const first = await forge.open(wanted, NO_SIGNAL);
    await commit('proposed/shop/v2');
    const long = await forge.open({ ...wanted, head: 'proposed/shop/v2' }, NO_SIGNAL);
    await commit('proposed/shop/v3');
    const last = await forge.open({ ...wanted, head: 'proposed/shop/v3' }, NO_SIGNAL);
    for (const pull of repository.pulls) if (pull.number === long.number) pull.body = 'x'.repeat(9 * 1024 * 1024);
    const numbers = [first.number, last.number];
    for (const list of [
      await forge.listOpen('main', 10, NO_SIGNAL),
      await forge.listUpdated('1970-01-01T00:00:00Z', 10, NO_SIGNAL),
    ])
      expect(list.map(({ number }) => number).sort()).toEqual(numbers);
    const error = await failure(forge.get(long.number, NO_SIGNAL));
    expect([error.code, error.message]).toEqual([
      'LimitExceeded',
      expect.stringMatching(/longer than 8388608 bytes; shorten/),
    ]);
  });

  test('comments hide no verdict, and a list of reviews is never a part', async () => {
    const { forge, repository, names } = await start();
    const { number } = await forge.open(wanted, NO_SIGNAL);
    const pull = repository.pulls.find((one) => one.number === number);
    const at = '2026-01-01T00:00:00Z';
    const add = (user: string, state: string, count: number) => {
      for (let id = 1; id <= count; id += 1)
        pull?.reviews.push({
          id: id + (pull.reviews.length + 1) * 10,
          user,
          state,
          body: '',
          commit: pull.head.commit,
          at,
        });
    };
    add('stranger', 'COMMENTED', 520);
    add(names.anna, 'CHANGES_REQUESTED', 1);
    const reviews = await forge.reviews(number, NO_SIGNAL);
    expect(reviews.map(({ author, state }) => [author, state])).toEqual([[names.anna, 'changes-requested']]);
    server.fault = ({ url }) => {
      const page = /\/reviews\?.*\bpage=(\d+)/.exec(url)?.[1];
      const review = { id: 1, user: null, state: 'COMMENTED', html_url: 'https://github.test/1' };
      return page === undefined ? undefined : { status: 200, body: JSON.stringify(Array(100).fill(review)) };
    };
    const error = await failure(forge.reviews(number, NO_SIGNAL));
    expect([error.code, error.message]).toEqual(['LimitExceeded', expect.stringMatching(/200 pages.*; close it/)]);
  });

  test('reviews that a query returns in part are read by themselves', async () => {
    const { forge, repository, names } = await start();
    const { number } = await forge.open(wanted, NO_SIGNAL);
    const pull = repository.pulls.find((one) => one.number === number);
    const review = { id: 11, user: names.anna, state: 'APPROVED', body: '', commit: pull?.head.commit ?? '' };
    pull?.reviews.push({ ...review, at: '2026-01-01T00:00:00Z' });
    const login = names.anna;
    const author = { __typename: 'User', login };
    const read = {
      ...{ number, url: 'https://github.test/1', state: 'OPEN', title: '', body: '', author, isCrossRepository: false },
      ...{ headRefName: 'x', headRefOid: review.commit, baseRefName: 'main', baseRefOid: review.commit },
      ...{ createdAt: '2026-01-01T00:00:00Z', updatedAt: '2026-01-01T00:00:00Z', comments: { totalCount: 0 } },
      isInMergeQueue: false,
      baseChanges: { nodes: [] },
    };
    for (const reviews of [null, { totalCount: 1, nodes: [null] }, { totalCount: 1, nodes: null }]) {
      const body = JSON.stringify({ data: { repository: { [`p${number}`]: { ...read, reviews } } } });
      server.fault = ({ url }) => (url.endsWith('/graphql') ? { status: 200, body } : undefined);
      const state = await forge.state(number, NO_SIGNAL);
      expect(state.reviews.map((one) => [one.author, one.state])).toEqual([[login, 'approved']]);
    }
  });

  test('addresses of pages are one line without control characters, and bounded', async () => {
    const { forge } = await start();
    const pull = await forge.open(wanted, NO_SIGNAL);
    const address = `https://github.test/\u001b[31m\u202e\n${'x'.repeat(1000)}`;
    const clean = expect.stringMatching(/^https:\/\/github\.test\/ x{400,}$/);
    server.fault = ({ url }) => {
      if (url.endsWith('/graphql')) return undefined;
      const review = { id: 1, user: { login: 'anna' }, state: 'APPROVED', html_url: address };
      const refs = { ref: 'main', sha: pull.head.commit, repo: { id: 1 } };
      const shown = {
        number: pull.number,
        html_url: address,
        state: 'open',
        title: '',
        labels: [],
        head: refs,
        base: refs,
      };
      if (url.includes('/reviews'))
        return { status: 200, body: JSON.stringify(url.includes('&page=1') ? [review] : []) };
      return {
        status: 200,
        body: JSON.stringify({ ...shown, created_at: pull.createdAt, updated_at: pull.updatedAt }),
      };
    };
    const got = [(await forge.get(pull.number, NO_SIGNAL)).url, (await forge.reviews(pull.number, NO_SIGNAL))[0]?.url];
    expect(got).toEqual([clean, clean]);
    for (const url of got) expect(url?.length).toBeLessThanOrEqual(500);
  });

  test.each(['app', 'user'] as const)('a token that the host echoes is in no error, as %s', async (kind) => {
    const { forge } = await start(kind);
    await forge.listOpen('main', 10, NO_SIGNAL);
    const sent = server.requests.at(-1)?.headers.authorization?.split(' ').at(-1) ?? '';
    expect(sent).toMatch(/^gh[ps]_/);
    for (const status of [400, 403, 422, 500, 301]) {
      const body = JSON.stringify({ message: `no ${sent} here`, errors: [{ message: `nor ${sent}` }] });
      failOn('GET', { status, body, headers: { location: `http://127.0.0.1:1/?${sent}` } });
      const error = await failure(forge.get(1, NO_SIGNAL), [sent]);
      expect(error.message).toContain('no *** here');
    }
    failOn('GET', { status: 200, body: JSON.stringify({ number: sent }) });
    expect((await failure(forge.get(1, NO_SIGNAL), [sent])).code).toBe('Corrupt');
  });

  test('the rules for Git hosts apply, and nothing is sent to a refused one', async () => {
    const { repository } = await start();
    const { name } = repository;
    const before = server.requests.length;
    const refused = {
      owner: OWNER,
      name,
      api: server.api,
      tokenName: 'Secret default/github',
      network: PUBLIC_NETWORK,
    };
    expect(() => new GitHubForge({ ...refused, credentials: async () => ({ token: 'x' }) })).toThrow(/127\.0\.0\.1/);
    expect(server.requests.length).toBe(before);
  });

  test('lists that have not changed are conditional requests', async () => {
    const { forge, commit } = await start();
    const pull = await forge.open(wanted, NO_SIGNAL);
    const statuses = async () => {
      const before = server.requests.length;
      const [listed] = await forge.listOpen('main', 10, NO_SIGNAL);
      expect(await forge.get(pull.number, NO_SIGNAL)).toEqual(listed);
      return server.requests.slice(before).map(({ status }) => status);
    };
    expect(await statuses()).toEqual([200, 200]);
    expect(await statuses()).toEqual([304, 304]);
    await commit('proposed/shop/v1');
    expect(await statuses()).toEqual([200, 200]);
  });

  test('an invitation to a team that was not accepted is no membership', async () => {
    const { forge, repository } = await start('app');
    repository.members.set('invited', new Map([['anna', 'pending']]));
    expect(await forge.isTeamMember(`${OWNER}/invited`, 'anna', NO_SIGNAL)).toBe(false);
    repository.members.get('invited')?.set('anna', 'active');
    expect(await forge.isTeamMember(`${OWNER}/invited`, 'anna', NO_SIGNAL)).toBe(true);
  });
});

describe('a GitHub App', () => {
  const forges: GitHubForge[] = [];
  afterEach(async () => {
    await Promise.all(forges.splice(0).map((forge) => forge.close()));
  });

  function connect(credentials: GitHubCredentials, now?: () => number): GitHubForge {
    const name = `installed-${randomUUID().slice(0, 8)}`;
    server.createRepository(OWNER, name, [OWNER]);
    const forge = new GitHubForge({
      ...{ api: `${server.api}/`, owner: OWNER, name, network: DEFAULT_NETWORK },
      ...{ credentials: async () => credentials, tokenName: 'Secret default/github' },
      ...(now === undefined ? {} : { now }),
    });
    forges.push(forge);
    return forge;
  }

  test('uses one token for one repository with the permissions that are needed, and another one near its end', async () => {
    let offset = 0;
    const app = { id: APP.id, privateKey: server.privateKey };
    const forge = connect({ app }, () => Date.now() + offset);
    const before = server.requests.length;
    const created = () => server.requests.slice(before).filter(({ url }) => url.endsWith('/access_tokens'));
    await Promise.all([1, 2, 3].map((limit) => forge.listOpen('main', limit, NO_SIGNAL)));
    await forge.listOpen('main', 10, NO_SIGNAL);
    expect(created().map(({ body }) => body)).toEqual([
      {
        repositories: [expect.stringMatching(/^installed-/)],
        permissions: { checks: 'write', contents: 'read', pull_requests: 'write' },
      },
    ]);
    offset = 54 * 60_000;
    await forge.listOpen('main', 10, NO_SIGNAL);
    expect(created()).toHaveLength(1);
    offset = 56 * 60_000;
    await forge.listOpen('main', 10, NO_SIGNAL);
    expect(created()).toHaveLength(2);
    for (const { url, headers } of server.requests.slice(before)) {
      expect(url).not.toContain('ghs_');
      expect(headers['x-github-api-version']).toBe('2022-11-28');
    }
  });

  test('gets another token where the host accepts the present one no more', async () => {
    const forge = connect({ app: { id: APP.id, privateKey: server.privateKey, installation: APP.installation } });
    await forge.listOpen('main', 10, NO_SIGNAL);
    server.revokeInstallationTokens();
    expect((await failure(forge.listOpen('main', 10, NO_SIGNAL))).code).toBe('Unauthenticated');
    expect(await forge.listOpen('main', 10, NO_SIGNAL)).toEqual([]);
  });

  test.each<[string, Partial<{ id: number; privateKey: string; installation: number }>, RegExp]>([
    [
      'a key of another App',
      { privateKey: rsaKey() },
      /^Unauthenticated: (?!.*the token).*githubAppPrivateKey\) is one of App 4242.*docs\/github-app\.md/,
    ],
    ['no key', { privateKey: 'secret words' }, /^InvalidInput: .*Secret default\/github is no RSA key in PEM/],
    ['a key of another kind', { privateKey: ellipticKey() }, /^InvalidInput: .*no RSA key/],
    ['another id', { id: 17 }, /^Unauthenticated: /],
    [
      'an installation that does not exist',
      { installation: 5 },
      /^Unauthenticated: .*install App 4242 in acme\/installed/,
    ],
  ])('with %s, the error says what to do, and contains no key', async (_what, wrong, message) => {
    const app = { id: APP.id, privateKey: server.privateKey, ...wrong };
    const forge = connect({ app });
    const error = await failure(forge.listOpen('main', 10, NO_SIGNAL), [app.privateKey, 'secret words']);
    expect(`${error.code}: ${error.message}`).toMatch(message);
  });

  test('ends for a caller that ends, and not for the others that wait for the same token', async () => {
    const forge = connect({ app: { id: APP.id, privateKey: server.privateKey } });
    server.fault = ({ url }) => (url.endsWith('/access_tokens') ? 'hang' : undefined);
    const reason = new Error('the caller ends');
    await expect(forge.listOpen('main', 10, abortSoon(reason))).rejects.toBe(reason);
    server.fault = ({ url }) => (url.endsWith('/access_tokens') ? { status: 502, body: '' } : undefined);
    const other = connect({ app: { id: APP.id, privateKey: server.privateKey } });
    expect((await failure(other.listOpen('main', 10, NO_SIGNAL))).code).toBe('Unavailable');
    server.fault = () => undefined;
    expect(await other.listOpen('main', 10, NO_SIGNAL)).toEqual([]);
  });

  test('reports a permission that the installation was not granted', async () => {
    server.granted = { metadata: 'read', contents: 'read', pull_requests: 'write' };
    const forge = connect({ app: { id: APP.id, privateKey: server.privateKey } });
    const error = await failure(forge.listOpen('main', 10, NO_SIGNAL)).finally(() => {
      server.granted = GRANTED;
    });
    expect(`${error.code}: ${error.message}`).toMatch(/^InvalidInput: .*not granted.*install App 4242 .*permissions/);
  });
});

function rsaKey(): string {
  return generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs1', format: 'pem' })
    .toString();
}

function ellipticKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** A signal that is aborted in a moment. */
function abortSoon(reason: Error): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), 50);
  return controller.signal;
}

test('names that strangers choose are code in the summary of a check run, which GitHub shows as Markdown', async () => {
  const { forge, commit, close } = await open('app');
  const before = server.requests.length;
  const title =
    '1 error: db/[Approved](https:evil.example) ![i](https:evil.example/p.png) @octocat <b>`x`</b>.yaml:2: no';
  try {
    await forge.setChecks(
      await commit('proposed/shop/v1'),
      [{ name: 'sluice/ready', state: 'failure', title }],
      NO_SIGNAL,
    );
  } finally {
    await close();
  }
  const [run] = server.requests.slice(before).filter(({ url }) => url.endsWith('/check-runs'));
  expect((run?.body as { output?: object } | undefined)?.output).toMatchObject({
    title,
    summary: `\`${title.replaceAll('`', 'ˋ')}\``,
  });
});

test('the page that users create their App by has exactly the permissions that it needs', async () => {
  const { connectWith, names, commit, close, join } = await open('app');
  // Only callers that open issues need the permission for them.
  const forge = connectWith({ usesIssues: false });
  const before = server.requests.length;
  server.used.clear();
  try {
    const head = await commit('proposed/shop/v1');
    const pull = await forge.open(wanted, NO_SIGNAL);
    await forge.setChecks(head, [{ name: 'sluice/ready', state: 'success', title: 'open' }], NO_SIGNAL);
    await forge.requestReviewers(pull.number, { users: [names.anna], teams: [] }, NO_SIGNAL);
    await forge.addLabels(pull, ['package'], NO_SIGNAL);
    await forge.reviews(pull.number, NO_SIGNAL);
    await forge.closing(pull, NO_SIGNAL);
    await forge.mergeQueue?.waiting('main', NO_SIGNAL);
    await forge.mergeQueue?.treeOf(head, '', NO_SIGNAL);
    await forge.isTeamMember(await join(names.anna), names.anna, NO_SIGNAL);
    await forge.merge(pull.number, { headCommit: head, method: 'merge', title: 't', message: '' }, NO_SIGNAL);
  } finally {
    await close();
  }
  const [token] = server.requests.slice(before).filter(({ url }) => url.endsWith('/access_tokens'));
  const { permissions } = (token?.body ?? {}) as { permissions?: Record<string, string> };
  expect(Object.fromEntries(server.used)).toEqual(permissions);
  expect(documentedPermissions()).toEqual({ metadata: 'read', ...permissions });
});

test('a token is for issues only where they are used', async () => {
  const { connectWith, close } = await open('app');
  try {
    const ticket = { topic: 'task', since: '1970-01-01T00:00:00Z', title: 'task', body: '' };
    const without = connectWith({ usesIssues: false }).issues;
    const error = await failure(without.open(ticket, NO_SIGNAL));
    expect(`${error.code}: ${error.message}`).toMatch(/^Refused: .*lacks a permission .*issues=/);
    server.used.clear();
    await connectWith({}).issues.open(ticket, NO_SIGNAL);
    expect(server.used.get('issues')).toBe('write');
  } finally {
    await close();
  }
});
