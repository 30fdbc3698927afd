import { expect, test } from 'vitest';
import { ManualClock } from '../foundation/time/manual-clock.ts';
import { PollPace } from './poll-pace.ts';

const [POLL, QUIET, REPORTED] = [10_000, 30_000, 300_000];

function open() {
  const clock = new ManualClock();
  const pace = new PollPace(clock);
  const list = {};
  const poll = (isChanged: boolean, tookMs = 0) => pace.notePoll('apps', list, { tookMs, isChanged });
  const quiet = () => {
    clock.advance(301_000);
    poll(false);
    return pace.nextMs('apps', false);
  };
  return { clock, pace, list, poll, quiet };
}

test('polls often while there are changes, and seldom in quiet times', () => {
  const { clock, pace, poll, quiet } = open();
  pace.noteOpened('apps');
  expect(pace.nextMs('apps', false)).toBe(POLL);
  expect(quiet()).toBe(QUIET);
  poll(true);
  expect(pace.nextMs('apps', false)).toBe(POLL);
  clock.advance(301_000);
  expect(pace.nextMs('apps', true)).toBe(2000);
});

test('polls slowly while webhooks report each change, before or after a poll finds it', () => {
  const { clock, pace, poll, quiet } = open();
  pace.noteMessage('apps');
  poll(true);
  expect(quiet()).toBe(REPORTED);
  poll(true);
  clock.advance(5000);
  pace.noteMessage('apps');
  expect(quiet()).toBe(REPORTED);
});

test('one change that no message reports makes polls as frequent as without webhooks, for hours', () => {
  const { clock, pace, poll, quiet } = open();
  pace.noteMessage('apps');
  expect(quiet()).toBe(REPORTED);
  poll(true);
  expect(quiet()).toBe(QUIET);
  // Later messages may be of other events.
  pace.noteMessage('apps');
  expect(quiet()).toBe(QUIET);
  clock.advance(6 * 3_600_000);
  expect(quiet()).toBe(REPORTED);
});

test('a wall clock that was set ahead and back delays no poll, and ends no pause', () => {
  const { clock, pace, list, poll } = open();
  const DAY = 86_400_000;
  clock.setBy(DAY);
  pace.noteMessage('apps');
  pace.noteRead('apps', 60_000);
  poll(true, 60_000);
  const waits = () => [pace.waitMs(list), pace.readWaitMs('apps'), pace.dueMs('apps', list, false)];
  expect(waits()).toEqual([3000, 3000, QUIET]);
  clock.setBy(-DAY);
  expect(waits()).toEqual([3000, 3000, QUIET]);
  clock.advance(301_000);
  expect([...waits(), pace.nextMs('apps', false)]).toEqual([0, 0, 0, REPORTED]);
});

test('pauses after a poll in proportion to its duration, and never for long', () => {
  const { clock, pace, list, poll } = open();
  poll(true, 100);
  expect(pace.waitMs(list)).toBe(400);
  clock.advance(400);
  expect(pace.waitMs(list)).toBe(0);
  poll(true, 60_000);
  expect(pace.waitMs(list)).toBe(3000);
  expect(pace.waitMs({})).toBe(0);
});
