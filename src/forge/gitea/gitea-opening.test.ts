import { expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { PullRequest } from '../forge.ts';
import type { GiteaLabels } from './gitea-labels.ts';
import { GiteaOpening, type OpeningRequests } from './gitea-opening.ts';

const NO_SIGNAL = new AbortController().signal;
const UPDATED_AT = '2026-03-01T10:00:00Z';

/** A host whose requests end when the test lets them. */
function host() {
  const pulls: PullRequest[] = [];
  const requests: { readonly what: string; readonly end: (error?: Error) => void }[] = [];
  const request = <Result>(what: string, result: () => Result): Promise<Result> => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    requests.push({ what, end: (error) => (error === undefined ? resolve(result()) : reject(error)) });
    return promise;
  };
  const add = (branch: string): PullRequest => {
    const number = pulls.length + 1;
    const url = `https://git.example.com/pulls/${number}`;
    const made: PullRequest = {
      ...{ number, url, state: 'open', title: 't', body: '', author: 'sluice', labels: [], createdAt: UPDATED_AT },
      ...{ base: { branch: 'main' }, updatedAt: UPDATED_AT },
      head: { branch, commit: 'a'.repeat(40), isSameRepository: true },
    };
    pulls.push(made);
    return made;
  };
  const closed: number[] = [];
  const openings = new GiteaOpening(
    {
      create: ({ head }) => request(`open ${head}`, () => add(head)),
      get: async (number) => pulls[number - 1] as PullRequest,
      listOpen: async () => pulls,
      listOpenSince: (since) => request('list', () => pulls.filter((one) => Date.parse(one.updatedAt) >= since)),
      update: async (number) => {
        closed.push(number);
        return pulls[number - 1] as PullRequest;
      },
    },
    undefined as unknown as GiteaLabels,
  );
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return {
    ...{ add, closed, pulls },
    open: (head: string) => openings.open({ head, base: 'main', title: 't', body: '' }, NO_SIGNAL),
    /** Ends the first such request. */
    end: async (what: string, error?: Error) => {
      await settled();
      const index = requests.findIndex((one) => one.what === what);
      const [found] = index === -1 ? [] : requests.splice(index, 1);
      if (found === undefined) throw new Error(`there is no request ${what}`);
      found.end(error);
      await settled();
    },
  };
}

test('a list that others read while one waits does not hide from it what another process has opened', async () => {
  const { add, closed, open, end } = host();
  add('c');
  const first = open('a');
  await end('open a');
  const second = open('b');
  await end('open b');
  const slow = open('d').catch((error: unknown) => error);
  const third = open('c');
  await end('open c');
  // For those that do not wait for the slow one.
  await end('list');
  await end('list');
  await end('open d', new SluiceError('Unavailable', 'the host is down'));
  await end('list');
  expect([(await first).head.branch, (await second).head.branch]).toEqual(['a', 'b']);
  expect(await slow).toMatchObject({ code: 'Unavailable' });
  expect((await third).number).toBe(1);
  expect(closed).toEqual([4]);
});

/** A host that opens one for each of two requests at the same time, and one alone later. */
function racing() {
  const { add, pulls } = host();
  let isDown = false;
  const open = () => pulls.filter(({ state }) => state === 'open').toReversed();
  const list = async () => {
    if (isDown) throw new SluiceError('Unavailable', 'the host is down');
    return open();
  };
  /** With a memory of its own. */
  const process = () => {
    let isFirst = true;
    const requests: OpeningRequests = {
      create: async ({ head }) => {
        const isRefused = !isFirst && open().length > 0;
        isFirst = false;
        if (isRefused) throw new SluiceError('Conflict', 'pull request already exists');
        return add(head);
      },
      ...{ listOpen: list, listOpenSince: list },
      get: async (number) => pulls[number - 1] as PullRequest,
      update: async (number, { state = 'open' as const }) => {
        // One that was closed since the request began.
        if (pulls[number - 1]?.state === state) throw new SluiceError('Unavailable', 'status 500');
        const changed: PullRequest = { ...(pulls[number - 1] as PullRequest), state };
        pulls[number - 1] = changed;
        return changed;
      },
    };
    const openings = new GiteaOpening(requests, undefined as unknown as GiteaLabels);
    return async () => (await openings.open({ head: 'a', base: 'main', title: 't', body: '' }, NO_SIGNAL)).number;
  };
  return {
    ...{ process, add },
    states: () => pulls.map(({ state }) => state),
    fail: (fails: boolean) => {
      isDown = fails;
    },
  };
}

test('of those that two processes opened at the same time one stays, although neither could list them right then', async () => {
  const { process, states, fail } = racing();
  const [one, other] = [process(), process()];
  fail(true);
  expect((await Promise.allSettled([one(), other()])).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(states()).toEqual(['open', 'open']);
  fail(false);
  expect([await one(), await other()]).toEqual([1, 1]);
  expect(states()).toEqual(['open', 'closed']);
});

test('two processes that close the same one at the same time both get the one that stays', async () => {
  const { process, states } = racing();
  expect(await Promise.all([process()(), process()()])).toEqual([1, 1]);
  expect(states()).toEqual(['open', 'closed']);
});

test('the process whose pull request stays closes the one of a process that ended', async () => {
  const { process, add, states, fail } = racing();
  fail(true);
  const opened = process()();
  add('a');
  fail(false);
  expect(await opened).toBe(1);
  expect(states()).toEqual(['open', 'closed']);
});
