import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DEFAULT_NETWORK } from '../../git/network/git-network.ts';
import { GiteaForge } from './gitea-forge.ts';

const AT = '2026-03-01T10:00:00Z';
const BRANCH = 'sluice/delivery/edge';
const ENDED = 1000;

interface Pull {
  readonly number: number;
  readonly state: string;
  readonly body?: string;
  readonly head: { readonly label: string; readonly repo_id: number };
  readonly base: { readonly ref: string };
}

const pull = (number: number, label: string, state = 'closed', base = 'main', repo = 1): Pull & object => ({
  ...{ number, html_url: `http://h/${number}`, state, title: 't', body: '', user: { login: 'a' } },
  ...{ labels: [], merged: false, created_at: AT, updated_at: AT, closed_at: state === 'closed' ? AT : null },
  head: { label, sha: 'a'.repeat(40), repo_id: repo } as Pull['head'],
  base: { ref: base, repo_id: 1, repo: {} } as Pull['base'],
});

let pulls: Pull[];
let urls: string[];
let hasSearch: boolean;
let hasFilter: boolean;
let server: Server;
let forge: GiteaForge;
beforeEach(async () => {
  [pulls, urls, hasSearch, hasFilter] = [[], [], true, true];
  server = createServer((request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '', 'http://h');
    urls.push(pathname.replace('/api/v1/repos/o/n', ''));
    const [, base, head] = /\/pulls\/([^/]+)\/(.+)$/.exec(pathname) ?? [];
    const isOf = (one: Pull) =>
      one.base.ref === decodeURIComponent(base ?? '') && one.head.label === decodeURIComponent(head ?? '');
    if (base !== undefined) {
      // As Gitea, the first one in its database.
      const found = hasSearch ? pulls.find((one) => isOf(one) && one.head.repo_id === 1) : undefined;
      response.statusCode = found === undefined ? 404 : 200;
      response.end(JSON.stringify(found ?? { message: 'not found' }));
      return;
    }
    const [page, limit] = [Number(query.get('page')), Number(query.get('limit'))];
    const isListed = (one: Pull) =>
      one.state === query.get('state') && (!hasFilter || one.base.ref === query.get('base_branch'));
    const listed = pulls.filter(isListed).reverse();
    response.setHeader('x-total-count', String(listed.length));
    response.end(JSON.stringify(listed.slice((page - 1) * limit, page * limit)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  forge = new GiteaForge({
    ...{ api: `http://127.0.0.1:${port}/api/v1`, owner: 'o', name: 'n', network: DEFAULT_NETWORK, tokenName: 'x' },
    token: async () => 'secret',
  });
});
afterEach(async () => {
  await forge.close();
  server.close();
});

/** The number of the pull request of the branch, and the requests that this takes. */
async function find(base = 'main'): Promise<readonly [number | undefined, number]> {
  urls.length = 0;
  const found = await forge.find(BRANCH, base, new AbortController().signal);
  return [found?.number, urls.length];
}
const addOthers = (count = ENDED, base = 'main') => {
  for (let at = 0; at < count; at += 1) pulls.push(pull(pulls.length + 1, `other-${pulls.length}`, 'closed', base));
};

test('the last pull request of a branch is found without all that have ended', async () => {
  addOthers();
  pulls.push(pull(ENDED + 1, BRANCH), pull(ENDED + 2, BRANCH));
  addOthers(10);
  expect(await find()).toEqual([ENDED + 2, 3]);
  // The only one ended long ago.
  pulls = [pull(1, BRANCH)];
  addOthers(ENDED + 50);
  expect((await find())[0]).toBe(1);
});

test('an open one is found with one request, or with the list of those, where another one has ended before', async () => {
  addOthers();
  pulls.push(pull(ENDED + 1, BRANCH, 'open'), pull(ENDED + 2, BRANCH));
  expect(await find()).toEqual([ENDED + 1, 1]);
  pulls.push(pull(ENDED + 3, BRANCH, 'open'));
  pulls.splice(ENDED, 1, pull(ENDED + 1, BRANCH));
  expect(await find()).toEqual([ENDED + 3, 2]);
});

test('that there is none takes no list of those that have ended, once the host has shown that it finds others', async () => {
  addOthers();
  expect(await find()).toEqual([undefined, 4]);
  expect(await find()).toEqual([undefined, 2]);
  addOthers(ENDED, 'release/1');
  expect(await find('release/1')).toEqual([undefined, 4]);
  expect(urls[0]).toBe(`/pulls/release%2F1/${BRANCH}`);
});

test('a host that cannot find by branches is read, as far as a thousand of those that have ended', async () => {
  [hasSearch, hasFilter] = [false, false];
  pulls.push(pull(1, BRANCH));
  addOthers(500);
  expect((await find())[0]).toBe(1);
  expect((await find('release/1'))[0]).toBeUndefined();
  addOthers(ENDED);
  expect((await find())[0]).toBeUndefined();
});

test('a pull request of a fork, and one that is too long to be read, do not hide the one of the branch', async () => {
  pulls.push(pull(1, BRANCH, 'open', 'main', 2), pull(2, BRANCH));
  expect(await find()).toEqual([2, 3]);
  pulls = [{ ...pull(1, BRANCH), body: 'x'.repeat(20 * 1024 * 1024) }, pull(2, BRANCH)];
  expect((await find())[0]).toBe(2);
});
