import { expect, test } from 'vitest';
import type { PullRequest } from '../../../src/forge/forge.ts';
import { SharedLists } from '../../../src/forge/shared-lists.ts';
import { ManualClock } from '../../../src/foundation/time/manual-clock.ts';
import { PullRequests } from '../pull-requests.ts';
import { MemoryForge } from '../testing-forge.ts';
import { ChangedPulls } from './changed-pulls.ts';

const SIGNAL = new AbortController().signal;

function pull(number: number, updatedAt: string): PullRequest {
  return {
    ...{ number, url: `https://h/${number}`, state: 'open', title: '', body: '', author: '', labels: [] },
    ...{ base: { branch: 'main' }, createdAt: updatedAt, updatedAt },
    head: { branch: `b${number}`, commit: 'a'.repeat(40), isSameRepository: true },
  };
}

test('times of a host with offsets are compared as times', async () => {
  const clock = new ManualClock();
  // In the night in which daylight saving time ends in Europe.
  clock.advance(Date.parse('2026-10-25T01:10:05Z') - clock.now());
  let all = [pull(1, '2026-10-25T02:30:00+02:00')];
  const forge = {
    listUpdated: async (since: string) => all.filter(({ updatedAt }) => Date.parse(updatedAt) >= Date.parse(since)),
    listOpen: async () => all,
    get: async (number: number) => all.find((one) => one.number === number) as PullRequest,
  };
  const changes = new ChangedPulls(forge, { base: 'main', maxOpen: 10 }, new SharedLists(clock).reader(''), clock);
  await changes.begin({ maxRecent: 10 }, SIGNAL);
  // 2 changes at 01:09:58Z; 3 at 01:10:00Z, which is read singly.
  all = [...all, pull(2, '2026-10-25T02:09:58+01:00'), pull(3, '2026-10-25T02:10:00+01:00')];
  changes.note(all[2] as PullRequest);
  const read: number[] = [];
  for (let turn = 0; turn < 5; turn += 1) {
    clock.advance(10_000);
    read.push(...(await changes.read({ open: [] }, SIGNAL)).pulls.map(({ number }) => number));
  }
  expect(read).toContain(2);
});

test('what was read singly is not older than a list that was read before it, whatever its offset', async () => {
  const clock = new ManualClock();
  const forge = new MemoryForge();
  const { number } = await forge.open({ head: 'proposed/web/w1', base: 'main', title: 'first', body: '' });
  const shown = (title: string, updatedAt: string) => {
    forge.pulls[0] = { ...forge.change(number, { title }), updatedAt };
  };
  const pulls = new PullRequests(forge, 'main', clock);
  await pulls.ofBranch('proposed/web/w1', SIGNAL);
  shown('listed', '2026-10-25T02:30:00+02:00');
  const list = forge.listUpdated.bind(forge);
  // The host responds to a single request before the list arrives.
  Object.assign(forge, {
    listUpdated: async (since: string, limit: number) => {
      const listed = await list(since, limit);
      shown('read', '2026-10-25T02:10:00+01:00');
      clock.advance(1000);
      pulls.note(await forge.get(number));
      return listed;
    },
  });
  await pulls.poll(SIGNAL);
  expect((await pulls.ofBranch('proposed/web/w1', SIGNAL))?.title).toBe('read');
});
