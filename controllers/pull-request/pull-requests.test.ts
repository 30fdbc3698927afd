import { describe, expect, test, vi } from 'vitest';
import { SharedLists } from '../../src/forge/shared-lists.ts';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { PullRequests } from './pull-requests.ts';
import { KnownPulls } from './reading/known-pulls.ts';
import { MemoryForge } from './testing-forge.ts';

const NO_SIGNAL = new AbortController().signal;
const HEAD = 'proposed/app/w1';

async function open() {
  const forge = new MemoryForge();
  const clock = new ManualClock(Date.UTC(2030, 0, 1));
  const pulls = new PullRequests(forge, 'main', clock);
  pulls.note(await forge.open({ head: HEAD, base: 'main', title: 'app', body: '' }));
  // Once more, for what may have happened in the second of its opening.
  clock.advance(1000);
  expect(await pulls.poll(NO_SIGNAL)).toMatchObject({ branches: [HEAD], isChanged: false });
  const poll = () => pulls.poll(NO_SIGNAL);
  const push = (commit: string) => forge.change(1, { head: { branch: HEAD, commit, isSameRepository: true } });
  return { forge, clock, pulls, poll, push };
}

test('the effect of an own push is looked at by the next poll; a review at the same time is found there', async () => {
  const { forge, clock, pulls, poll, push } = await open();
  const before = await pulls.ofBranch(HEAD, NO_SIGNAL);
  pulls.notePush(HEAD);
  push('1'.repeat(40));
  forge.review(1, 'bob', 'approved', '1'.repeat(40));
  expect(await poll()).toMatchObject({ branches: [], isChanged: false });
  expect(pulls.hasUnseen).toBe(true);
  expect(await pulls.ofBranch(HEAD, NO_SIGNAL)).not.toBe(before);
  clock.advance(1000);
  expect(await poll()).toMatchObject({ branches: [HEAD], isChanged: false });
  expect(pulls.hasUnseen).toBe(false);
  clock.advance(1000);
  expect(await poll()).toMatchObject({ branches: [], isChanged: false });
});

test('a change of a text, and a push long after the own one, is looked at once and again after its second', async () => {
  const { forge, clock, pulls, poll, push } = await open();
  pulls.notePush(HEAD);
  forge.change(1, { title: 'other' });
  expect(await poll()).toMatchObject({ branches: [HEAD], isChanged: true });
  // Within the same second nothing is certain yet.
  clock.advance(500);
  expect(await poll()).toMatchObject({ branches: [], isChanged: false });
  clock.advance(500);
  expect(await poll()).toMatchObject({ branches: [HEAD], isChanged: false });
  clock.advance(10_000);
  push('2'.repeat(40));
  expect(await poll()).toMatchObject({ branches: [HEAD], isChanged: true });
});

test('what may have changed again in its second is in the next list, although another changed later', async () => {
  const { forge, clock, poll } = await open();
  forge.change(1, { title: 'other' });
  await poll();
  await forge.open({ head: 'proposed/app/w2', base: 'main', title: 'later', body: '' });
  await poll();
  const [first] = forge.pulls;
  // A comment in the same second: the time stays.
  if (first !== undefined) forge.pulls[0] = { ...first, hasComments: true };
  clock.advance(1000);
  expect(await poll()).toMatchObject({ branches: expect.arrayContaining([HEAD]), isChanged: true });
});

test('a state that was read a moment ago is returned for its number, and not later', async () => {
  const { clock, pulls } = await open();
  expect(pulls.readWithin(HEAD, 1, 1000)?.number).toBe(1);
  expect(pulls.readWithin(HEAD, 2, 1000)).toBeUndefined();
  clock.advance(1001);
  expect(pulls.readWithin(HEAD, 1, 1000)).toBeUndefined();
});

test('what was read while the wall clock was ahead is read again as soon as after any other read', async () => {
  const { forge, clock, pulls, poll, push } = await open();
  const DAY = 86_400_000;
  clock.setBy(DAY);
  expect(await pulls.upToDate.read(NO_SIGNAL)).toBe(false);
  pulls.notePush(HEAD);
  forge.change(1, { title: 'other' });
  expect(await poll()).toMatchObject({ branches: [HEAD] });
  clock.setBy(-DAY);
  clock.advance(1000);
  expect(await poll()).toMatchObject({ branches: [HEAD] });
  clock.advance(10_000);
  // The push was not one of Sluice.
  push('1'.repeat(40));
  expect(await poll()).toMatchObject({ branches: [HEAD], isChanged: true });
  clock.advance(1001);
  expect(pulls.readWithin(HEAD, 1, 1000)).toBeUndefined();
  const rules = forge.calls.filter((call) => call === 'branchRules').length;
  clock.advance(600_000);
  await pulls.upToDate.read(NO_SIGNAL);
  expect(forge.calls.filter((call) => call === 'branchRules')).toHaveLength(rules + 1);
});

test('changes by a host whose clock was ahead and is corrected are read', async () => {
  const { forge, clock, poll } = await open();
  const [first] = forge.pulls;
  if (first !== undefined) forge.pulls[0] = { ...first, title: 'ahead', updatedAt: '2030-01-02T00:00:00Z' };
  expect(await poll()).toMatchObject({ branches: [HEAD] });
  clock.advance(2000);
  await poll();
  const { updatedAt } = await forge.open({ head: 'proposed/app/w2', base: 'main', title: 'later', body: '' });
  expect(updatedAt < '2030-01-01T00:01:00Z').toBe(true);
  expect(await poll()).toMatchObject({ branches: ['proposed/app/w2'], isChanged: true });
  forge.change(1, { state: 'closed' });
  expect(await poll()).toMatchObject({ branches: expect.arrayContaining([HEAD]), isChanged: true });
});

test('whether heads have to be up to date is what the host states, else what it refused a merge for', async () => {
  const { forge, clock, pulls } = await open();
  const required = () => pulls.upToDate.read(NO_SIGNAL);
  expect(await required()).toBe(false);
  // The rules stay for some minutes.
  forge.rules = { requiresUpToDate: true };
  expect(await required()).toBe(false);
  clock.advance(600_000);
  expect(await required()).toBe(true);
  forge.rules = { requiresUpToDate: false };
  clock.advance(600_000);
  expect(await required()).toBe(false);
  expect(forge.calls.filter((call) => call === 'branchRules')).toHaveLength(3);
  pulls.upToDate.noteBehind();
  // A host that does not state it, and one that lets administrators alone read it.
  for (const code of [undefined, 'Refused'] as const) {
    forge.rules = {};
    forge.before = (method) => {
      if (method === 'branchRules' && code !== undefined) throw new SluiceError(code, 'no administrator');
    };
    clock.advance(600_000);
    expect(await required()).toBe(true);
  }
  forge.before = () => {
    throw new SluiceError('TooManyRequests', 'later');
  };
  clock.advance(600_000);
  await expect(required()).rejects.toThrow('later');
});

test('of a reported pull request only what shows something new is read, with its reviews', async () => {
  const { forge, clock, pulls } = await open();
  const pull = await forge.get(1);
  const pushed = new Map([[HEAD, 'own']]);
  const { number, updatedAt, head } = pull;
  const shown = {
    number,
    updatedAt,
    state: 'open',
    head: { branch: HEAD, commit: head.commit },
    isReview: false,
    isComment: false,
  };
  expect(pulls.newsOf(shown, pushed)).toBe('nothing');
  expect(
    pulls.newsOf({ ...shown, head: { branch: HEAD, commit: 'own' }, updatedAt: '2031-01-01T00:00:00Z' }, pushed),
  ).toBe('nothing');
  for (const news of [
    { isComment: true },
    { isReview: true, state: 'closed' },
    { state: 'closed' },
    { updatedAt: '2031-01-01T00:00:00Z' },
    { updatedAt: undefined },
  ])
    expect(pulls.newsOf({ ...shown, ...news }, pushed)).toBe('state');
  expect(pulls.newsOf({ ...shown, head: { branch: HEAD, commit: 'of-a-user' } }, pushed)).toBe('head');
  for (const commit of [head.commit, 'own', 'of-a-user'])
    expect(pulls.newsOf({ ...shown, isReview: true, head: { branch: HEAD, commit } }, pushed)).toBe('reviews');
  expect(pulls.newsOf({ ...shown, number: 77 }, pushed)).toBe('list');
  expect(pulls.newsOf({ ...shown, number: 77, head: undefined }, pushed)).toBe('nothing');
  expect(pulls.newsOf(shown, new Map())).toBe('nothing');
  // The time of an own push is shown after its head; a review and an end are no effects of it.
  pulls.notePush(HEAD);
  const later = { ...shown, updatedAt: '2031-01-01T00:00:00Z' };
  expect(pulls.newsOf(later, pushed)).toBe('nothing');
  expect(pulls.newsOf({ ...later, isReview: true }, pushed)).toBe('reviews');
  expect(pulls.newsOf({ ...later, state: 'closed' }, pushed)).toBe('state');
  clock.advance(10_001);
  expect(pulls.newsOf(later, pushed)).toBe('state');

  const before = await pulls.ofBranch(HEAD, NO_SIGNAL);
  const review = {
    id: '1',
    author: 'bob',
    state: 'approved',
    commit: head.commit,
    url: 'u',
    submittedAt: updatedAt,
  } as const;
  forge.reviewsOf.set(number, [review]);
  // In the second of its opening, so that its time is the same.
  expect(await pulls.readStates([number, 77], NO_SIGNAL)).toEqual({ branches: [HEAD] });
  const after = await pulls.ofBranch(HEAD, NO_SIGNAL);
  expect(after).not.toBe(before);
  expect(after && pulls.reviewsOf(after)).toEqual([review]);
});

test('a pull request that cannot be read now is looked at again, and the failure is returned', async () => {
  const { forge, pulls } = await open();
  const before = await pulls.ofBranch(HEAD, NO_SIGNAL);
  const failure = new SluiceError('Unavailable', 'the host is gone');
  forge.before = () => {
    throw failure;
  };
  expect(await pulls.readStates([1], NO_SIGNAL)).toEqual({ branches: [HEAD], failure });
  forge.before = () => undefined;
  const after = await pulls.ofBranch(HEAD, NO_SIGNAL);
  expect(after).toEqual(before);
  expect(after).not.toBe(before);
});

test('of two changes in one second the second one is looked at by the first poll after the given time', async () => {
  const { forge, clock, pulls } = await open();
  forge.change(1, { title: 'other' });
  const poll = async () => (await pulls.poll(NO_SIGNAL, { secondLookMs: 10_000 })).branches;
  expect(await poll()).toEqual([HEAD]);
  clock.advance(9999);
  expect(await poll()).toEqual([]);
  clock.advance(1);
  expect(await poll()).toEqual([HEAD]);
  expect(await poll()).toEqual([]);
});

test('a pull request is found by its number after another one of its branch, and with another branch', async () => {
  const { forge, pulls } = await open();
  forge.change(1, { state: 'closed' });
  const second = await forge.open({ head: HEAD, base: 'main', title: 'again', body: '' });
  expect(pulls.note(second)).toBe(true);
  expect(pulls.lookAgainAt(new Set([1]))).toEqual([]);
  expect(pulls.lookAgainAt(new Set([2]))).toEqual([HEAD]);
  pulls.note(forge.change(2, { head: { ...second.head, branch: 'proposed/app/renamed' } }));
  pulls.forget(HEAD);
  expect(pulls.lookAgainAt(new Set([2]))).toEqual(['proposed/app/renamed']);
});

test('more changes than one list has are looked at all the same, and those that ended', async () => {
  const { forge, clock, pulls } = await open();
  const count = 1200;
  // Each change takes the host a second.
  clock.advance(4 * count * 1000);
  for (let number = 2; number <= count; number += 1)
    pulls.note(await forge.open({ head: `proposed/app/w${number}`, base: 'main', title: 'app', body: '' }));
  const poll = async () => {
    clock.advance(60_000);
    return pulls.poll(NO_SIGNAL);
  };
  await poll();
  forge.change(1, { state: 'merged', merged: { commit: 'd', by: 'bob' } });
  for (let number = 2; number <= count; number += 1) forge.change(number, { title: 'other' });
  const down = new SluiceError('Unavailable', 'the host is down');
  forge.before = (method) => {
    if (method === 'get') throw down;
  };
  await expect(poll()).rejects.toBe(down);
  forge.before = () => undefined;
  expect(new Set((await poll()).branches).size).toBe(count);
  expect((await pulls.ofBranch(HEAD, NO_SIGNAL))?.state).toBe('merged');
  expect((await pulls.ofBranch('proposed/app/w2', NO_SIGNAL))?.title).toBe('other');
  await poll();
  forge.calls.length = 0;
  expect(await poll()).toMatchObject({ branches: [], isChanged: false });
  expect(forge.calls).toEqual(['listUpdated']);
});

/** Two pull requests of which the first one is merged just before the other one changes, with the responses of a host that is loaded. */
describe('a merge that the host reports while an older response is on its way', () => {
  const OTHER = 'proposed/app/w2';
  const state = (pulls: PullRequests) => pulls.ofBranch(HEAD, NO_SIGNAL).then((pull) => pull?.state);

  async function openTwo(...[forge, clock, lists]: [MemoryForge, ManualClock, SharedLists]) {
    for (const head of [OTHER, HEAD]) await forge.open({ head, base: 'main', title: 'app', body: '' });
    const pulls = new PullRequests(forge, 'main', clock, { lists: lists.reader('apps') });
    for (const branch of [OTHER, HEAD]) await pulls.ofBranch(branch, NO_SIGNAL);
    return pulls;
  }
  function merge(forge: MemoryForge): void {
    const [other, merged] = forge.pulls;
    forge.change(merged?.number ?? 0, { state: 'merged', merged: { commit: 'd', by: 'bob' } });
    forge.change(other?.number ?? 0, { title: 'other' });
  }
  async function settle(clock: ManualClock, pulls: PullRequests): Promise<void> {
    for (let times = 0; times < 3; times += 1) {
      clock.advance(10_000);
      await pulls.poll(NO_SIGNAL);
    }
  }

  test('and another controller has read the list', async () => {
    const [forge, clock] = [new MemoryForge(), new ManualClock()];
    const lists = new SharedLists(clock);
    const pulls = await openTwo(forge, clock, lists);
    const users = lists.reader('apps');
    await settle(clock, pulls);
    const response = await forge.get(2);
    merge(forge);
    clock.advance(100);
    await users.updated(forge, { since: response.updatedAt, maxAgeMs: 0 }, NO_SIGNAL);
    clock.advance(100);
    pulls.note(response);
    clock.advance(2000);
    expect((await pulls.poll(NO_SIGNAL, { maxAgeMs: 5000 })).branches).toContain(HEAD);
    await settle(clock, pulls);
    expect(await state(pulls)).toBe('merged');
  });

  test('and the response arrives before the list', async () => {
    const [forge, clock] = [new MemoryForge(), new ManualClock()];
    const pulls = await openTwo(forge, clock, new SharedLists(clock));
    await settle(clock, pulls);
    const response = await forge.get(2);
    merge(forge);
    forge.after = () => {
      forge.after = () => undefined;
      clock.advance(200);
      pulls.note(response);
    };
    expect((await pulls.poll(NO_SIGNAL)).branches).toContain(HEAD);
    await settle(clock, pulls);
    expect(await state(pulls)).toBe('merged');
  });

  test('and that is the list of the start', async () => {
    const [forge, clock] = [new MemoryForge(), new ManualClock()];
    forge.after = (method) => {
      if (method !== 'listUpdated') return;
      forge.after = () => undefined;
      merge(forge);
    };
    const pulls = await openTwo(forge, clock, new SharedLists(clock));
    await settle(clock, pulls);
    expect(await state(pulls)).toBe('merged');
  });

  test('and a later one is opened before the first list', async () => {
    const [forge, clock] = [new MemoryForge(), new ManualClock()];
    const pulls = await openTwo(forge, clock, new SharedLists(clock));
    merge(forge);
    pulls.note(await forge.open({ head: 'proposed/web/w1', base: 'main', title: 'web', body: '' }));
    expect((await pulls.poll(NO_SIGNAL)).branches).toContain(HEAD);
  });
});

test('pull requests of users are not kept', async () => {
  const { forge, clock, pulls, poll } = await open();
  const set = vi.spyOn(KnownPulls.prototype, 'set');
  const { number } = await forge.open({ head: 'fix', base: 'main', title: 'fix', body: '' });
  clock.advance(2000);
  await poll();
  forge.change(number, { state: 'merged', merged: { commit: '1'.repeat(40), by: 'bob' } });
  clock.advance(2000);
  await poll();
  expect(set.mock.calls.filter(([{ pull }]) => pull.number === number)).toEqual([]);
  expect(await pulls.ofBranch('fix', NO_SIGNAL)).toBeUndefined();
});
