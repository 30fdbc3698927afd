import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
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

test('pull requests that are too much for one query are read one by one', async () => {
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
