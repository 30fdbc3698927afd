import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { countingBudgets, openGitHub } from '../../../test/support/github/github-host.ts';
import { GitHubServer } from '../../../test/support/github/github-server.ts';
import type { ForgeErrorDetails } from '../forge.ts';

const NO_SIGNAL = new AbortController().signal;
const FAILED = 'Something went wrong while executing your query. Please include `0:1` when reporting this issue.';
const SECONDARY = 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.';

const server = new GitHubServer();
beforeAll(() => server.listen());
afterEach(() => {
  server.fault = () => undefined;
  server.unreturned.clear();
});
afterAll(() => server.close());

const wanted = (branch: string) => ({ head: branch, base: 'main', title: 'shop v1', body: 'text' });

/** A host with an open pull request, whose queries of GraphQL have an error in a response with the status 200. */
async function failing(error: object, headers: Readonly<Record<string, string>> = {}) {
  const host = await openGitHub(server, 'user', countingBudgets());
  await host.commit('proposed/shop/v1');
  const { number } = await host.forge.open(wanted('proposed/shop/v1'), NO_SIGNAL);
  const body = JSON.stringify({ ...('extensions' in error ? {} : { data: null }), errors: [error] });
  let queries = 0;
  server.fault = ({ url }) => {
    if (!url.endsWith('/graphql')) return undefined;
    queries += 1;
    return { status: 200, headers, body };
  };
  const read = () => host.forge.state(number, NO_SIGNAL).catch((reason: unknown) => reason);
  return { ...host, read, queries: () => queries };
}

test.each([
  ['a secondary limit', { message: SECONDARY }],
  ['a secondary limit with a type', { type: 'FORBIDDEN', message: SECONDARY }],
  ['a primary limit', { type: 'RATE_LIMITED', message: 'API rate limit exceeded for user ID 1.' }],
  ['a primary limit as it is at times', { type: 'RATE_LIMIT', message: 'Too many' }],
])('%s that a response with status 200 reports pauses what it limits', async (_what, error) => {
  const { read, queries, close } = await failing(error, { 'retry-after': '60' });
  expect(await read()).toMatchObject({ code: 'TooManyRequests', details: { retryAfterMs: 60_000 } });
  // Requests while it lasts may end in a ban of the App.
  expect(await read()).toMatchObject({ code: 'TooManyRequests' });
  expect(queries()).toBe(1);
  await close();
});

test('the primary limit of GraphQL lasts until its reset', async () => {
  const reset = String(Math.ceil(Date.now() / 1000) + 90);
  const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset, 'x-ratelimit-resource': 'graphql' };
  const { read, close } = await failing({ type: 'RATE_LIMITED', message: 'API rate limit exceeded' }, headers);
  const { retryAfterMs = 0 } = ((await read()) as { details: ForgeErrorDetails }).details;
  expect(retryAfterMs).toBeGreaterThan(80_000);
  expect(retryAfterMs).toBeLessThanOrEqual(91_000);
  await close();
});

test.each([
  ['a failure of GitHub', { message: FAILED }, 'Unavailable'],
  [
    'an error in the query',
    { message: "Field 'a' doesn't exist", extensions: { code: 'undefinedField' } },
    'InvalidInput',
  ],
  ['a rule', { type: 'UNPROCESSABLE', message: 'Required status check "rate limit" is expected.' }, 'InvalidInput'],
])('%s that a response with status 200 reports is classified, and pauses nothing', async (_what, error, code) => {
  const { read, queries, close } = await failing(error);
  expect(await read()).toMatchObject({ code });
  expect(await read()).toMatchObject({ code });
  expect(queries()).toBe(2);
  await close();
});

test('pull requests that are too much for one query are read with smaller ones', async () => {
  const { commit, forge, close } = await failing({
    type: 'RESOURCE_LIMITS_EXCEEDED',
    message: 'Resource limits exceeded',
  });
  const { fault } = server;
  server.fault = () => undefined;
  await commit('proposed/shop/v2');
  const { number } = await forge.open(wanted('proposed/shop/v2'), NO_SIGNAL);
  server.fault = (request) =>
    JSON.stringify(request.body).match(/p\d+: /g)?.length === 2 ? fault(request) : undefined;
  const read = [number - 1, number].map((one) => forge.state(one, NO_SIGNAL));
  expect((await Promise.all(read)).map(({ pull }) => pull.head.branch)).toEqual([
    'proposed/shop/v1',
    'proposed/shop/v2',
  ]);
  await close();
});

describe('pull requests that GitHub cannot return', () => {
  /** Opens so many. `read` reads them at the same time, and returns the branch of each, or the code of its error; `sizes` are those of the queries. */
  const opened = async (count: number) => {
    const { commit, forge, close } = await openGitHub(server, 'user', countingBudgets());
    const numbers: number[] = [];
    for (let version = 1; version <= count; version += 1) {
      await commit(`v${version}`);
      numbers.push((await forge.open(wanted(`v${version}`), NO_SIGNAL)).number);
    }
    const before = server.requests.length;
    const read = async () => {
      const states = await Promise.allSettled(numbers.map((number) => forge.state(number, NO_SIGNAL)));
      await close();
      return states.map((one) => (one.status === 'fulfilled' ? one.value.pull.head.branch : `${one.reason.code}`));
    };
    const sizes = () => server.requests.slice(before).map(({ body }) => sizeOf(body));
    return { numbers, read, sizes };
  };
  const sizeOf = (body: unknown) => JSON.stringify(body).match(/p\d+: /g)?.length ?? 0;
  const versions = (count: number) => Array.from({ length: count }, (_, index) => `v${index + 1}`);

  test('fail alone where the errors name them', async () => {
    const { numbers, read, sizes } = await opened(4);
    for (const number of numbers.slice(1, 3)) server.unreturned.add(number);
    expect(await read()).toEqual(['v1', 'Unavailable', 'Unavailable', 'v4']);
    expect(sizes()).toEqual([4]);
  });

  test.each([{ data: { repository: null } }, { data: null }, {}])(
    'are left out of the next query where it has nothing else: %j',
    async (data) => {
      const { numbers, read, sizes } = await opened(3);
      server.fault = ({ body }) => {
        if (!JSON.stringify(body).includes(`p${numbers[1]}:`)) return undefined;
        const errors = [{ path: ['repository', `p${numbers[1]}`, 'reviews'], message: FAILED }];
        return { status: 200, body: JSON.stringify({ ...data, errors }) };
      };
      expect(await read()).toEqual(['v1', 'Unavailable', 'v3']);
      expect(sizes()).toEqual([3, 2]);
    },
  );

  test.each([
    [200, [7], [20, 10, 5, 5, 3, 2, 1, 1, 1, 2, 10]],
    [502, [1, 20], [20, 10, 5, 3, 2, 1, 1, 1, 2, 5, 10, 5, 5, 3, 2, 1, 1]],
  ])('are found with few queries where nothing names them: status %i', async (status, failing, expected) => {
    const { numbers, read, sizes } = await opened(20);
    server.fault = ({ body }) => {
      const isFailing = failing.some((one) => JSON.stringify(body).includes(`p${numbers[one - 1]}:`));
      return isFailing ? { status, body: JSON.stringify({ data: null, errors: [{ message: FAILED }] }) } : undefined;
    };
    expect(await read()).toEqual(versions(20).map((one, index) => (failing.includes(index + 1) ? 'Unavailable' : one)));
    expect(sizes()).toEqual(expected);
  });

  test('are no more queries than a few while GitHub fails as a whole', async () => {
    const { read, sizes } = await opened(20);
    server.fault = () => ({ status: 502, body: '' });
    expect(new Set(await read())).toEqual(new Set(['Unavailable']));
    expect(sizes()).toHaveLength(12);
  });

  test.each([
    ['does not serve', { status: 503, body: '' }, 'Unavailable'],
    ['ends connections', 'cut', 'Unavailable'],
    [
      'does not accept the query',
      { status: 200, body: JSON.stringify({ errors: [{ message: 'x', extensions: {} }] }) },
      'InvalidInput',
    ],
    ['limits requests', { status: 200, body: JSON.stringify({ errors: [{ message: SECONDARY }] }) }, 'TooManyRequests'],
  ] as const)('are not searched for while GitHub %s', async (_what, fault, code) => {
    const { read, sizes } = await opened(3);
    server.fault = () => fault;
    expect(await read()).toEqual([code, code, code]);
    expect(sizes()).toEqual([3]);
  });

  /** The fields of pull requests that a query has. */
  const fieldsOf = (body: unknown) =>
    [...JSON.stringify(body).matchAll(/(p\d+): /g)].flatMap(([, field]) => field ?? []);
  const TOO_MUCH = { type: 'RESOURCE_LIMITS_EXCEEDED', message: 'Resource limits for this query exceeded.' };

  test.each(['names all', 'names the last', 'has nothing'])(
    'are read with smaller queries where they are too much together: GitHub %s',
    async (what) => {
      const { read, sizes } = await opened(4);
      server.fault = ({ body }) => {
        const fields = fieldsOf(body);
        if (fields.length <= 2) return undefined;
        const named = what === 'names all' ? fields : fields.slice(-1);
        const errors = named.map((field) => ({ ...TOO_MUCH, path: ['repository', field] }));
        const repository = what === 'has nothing' ? null : Object.fromEntries(fields.map((field) => [field, null]));
        return { status: 200, body: JSON.stringify({ data: { repository }, errors }) };
      };
      expect(await read()).toEqual(versions(4));
      expect(sizes()).toEqual([4, 2, 2]);
    },
  );

  test('fail where they are too much alone', async () => {
    const { numbers, read, sizes } = await opened(3);
    server.fault = ({ body }) => {
      const field = `p${numbers[2]}`;
      if (!fieldsOf(body).includes(field)) return undefined;
      const errors = [{ ...TOO_MUCH, path: ['repository', field] }];
      return { status: 200, body: JSON.stringify({ data: { repository: null }, errors }) };
    };
    expect(await read()).toEqual(['v1', 'v2', 'LimitExceeded']);
    expect(sizes()).toEqual([3, 2, 1]);
  });

  test('are no more queries than a few where each names another one', async () => {
    const { read, sizes } = await opened(20);
    server.fault = ({ body }) => {
      const errors = [{ path: ['repository', fieldsOf(body)[0]], message: FAILED }];
      return { status: 200, body: JSON.stringify({ data: { repository: null }, errors }) };
    };
    expect(new Set(await read())).toEqual(new Set(['Unavailable']));
    expect(sizes()).toHaveLength(12);
  });

  test('fail alone where what GitHub returns of them is not as documented', async () => {
    const { numbers, read, sizes } = await opened(2);
    const [first, second] = numbers.map((number) => `p${number}`);
    const repository = { [`${first}`]: { number: 'one' }, [`${second}`]: null };
    server.fault = () => ({ status: 200, body: JSON.stringify({ data: { repository } }) });
    expect(await read()).toEqual(['Corrupt', 'NotFound']);
    expect(sizes()).toEqual([2]);
  });
});
