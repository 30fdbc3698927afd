import { expect, test } from 'vitest';
import { ManualClock } from '../../../src/foundation/time/manual-clock.ts';
import { MergeAttempts, type MergeSubject } from './merge-attempts.ts';

test('a refused merge is requested again after its pause, also where the wall clock was ahead when it was refused', async () => {
  const clock = new ManualClock();
  const attempts = new MergeAttempts(clock);
  const place = { number: 1, head: 'a'.repeat(40), updatedAt: '2026-01-01T00:00:00Z' };
  const subject: MergeSubject = { ...place, method: 'merge', mergeability: undefined };
  const obstacle = () => attempts.obstacleTo('east', subject, async () => undefined);
  clock.setBy(86_400_000);
  attempts.noteUnmerged('east', subject, { obstacle: 'blocked', text: 'a check is missing' });
  clock.setBy(-86_400_000);
  expect(await obstacle()).toBe('a check is missing');
  clock.advance(60_000);
  expect(await obstacle()).toBeUndefined();
});

test('the pause doubles up to ten minutes, and a message of the host shortens it to the first one', async () => {
  const clock = new ManualClock();
  const attempts = new MergeAttempts(clock);
  const place = { number: 1, head: 'a'.repeat(40), updatedAt: '2026-01-01T00:00:00Z' };
  const subject: MergeSubject = { ...place, method: 'merge', mergeability: undefined };
  const isDue = async () => (await attempts.obstacleTo('east', subject, async () => undefined)) === undefined;
  const pauses: (number | undefined)[] = [];
  for (let attempt = 0; attempt < 8; attempt += 1) {
    attempts.noteUnmerged('east', subject, { obstacle: 'blocked', text: 'a check is missing' });
    const pause = attempts.dueMs('east') ?? 0;
    pauses.push(pause / 1000);
    clock.advance(pause - 1);
    expect(await isDue()).toBe(false);
    clock.advance(1);
    expect(await isDue()).toBe(true);
  }
  expect(pauses).toEqual([20, 40, 80, 160, 320, 600, 600, 600]);
  attempts.noteUnmerged('east', subject, { obstacle: 'blocked', text: 'a check is missing' });
  clock.advance(5000);
  attempts.noteMessage('east');
  expect(attempts.dueMs('east')).toBe(15_000);
  clock.advance(15_000);
  expect([await isDue(), attempts.dueMs('east')]).toEqual([true, undefined]);
  // What a host refuses for good is not asked for by its messages.
  attempts.noteUnmerged('east', subject, { obstacle: 'method', text: 'it is not allowed' });
  attempts.noteMessage('east');
  expect(attempts.dueMs('east')).toBe(600_000);
});

test('a message about the commit that is to be merged shortens the pause, also where it arrives during an attempt', async () => {
  const clock = new ManualClock();
  const attempts = new MergeAttempts(clock);
  const head = 'a'.repeat(40);
  const subject: MergeSubject = { number: 1, head, updatedAt: '2026-01-01T00:00:00Z', method: 'merge' };
  const refused = { obstacle: 'blocked', text: 'a check is missing' } as const;
  const attempt = async () => {
    expect(await attempts.obstacleTo('web', subject, async () => undefined)).toBeUndefined();
    return () => attempts.noteUnmerged('web', subject, refused);
  };
  expect(attempts.noteMessage('web', head)).toBe(false);
  for (const pauseMs of [20_000, 40_000, 80_000]) {
    const end = await attempt();
    expect(end()).toBe(pauseMs);
    clock.advance(pauseMs);
  }
  (await attempt())();
  clock.advance(15_000);
  const noted = ['b'.repeat(40), head, head].map((commit) => attempts.noteMessage('web', commit));
  expect([noted, attempts.dueMs('web')]).toEqual([[false, true, false], 5000]);
  clock.advance(5000);
  const end = await attempt();
  attempts.noteMessage('web', head);
  expect(end()).toBe(20_000);
  clock.advance(20_000);
  expect((await attempt())()).toBe(40_000);
});

test('checks of other commits during attempts leave the pauses as they are', async () => {
  const clock = new ManualClock();
  const attempts = new MergeAttempts(clock);
  const subject: MergeSubject = { number: 1, head: 'a'.repeat(40), updatedAt: '2026-01-01T00:00:00Z', method: 'merge' };
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 5; attempt += 1) {
    expect(await attempts.obstacleTo('web', subject, async () => undefined)).toBeUndefined();
    expect(attempts.noteMessage('web', 'b'.repeat(40))).toBe(false);
    const pauseMs = attempts.noteUnmerged('web', subject, { obstacle: 'blocked', text: 'a check is missing' });
    pauses.push(pauseMs / 1000);
    clock.advance(pauseMs);
  }
  expect(pauses).toEqual([20, 40, 80, 160, 320]);
});

test('what was reported during an attempt that ended with an error does not shorten a later pause', async () => {
  const attempts = new MergeAttempts(new ManualClock());
  const subject: MergeSubject = { number: 1, head: 'a'.repeat(40), updatedAt: '2026-01-01T00:00:00Z', method: 'merge' };
  const blocked = { obstacle: 'blocked', text: 'a check is missing' } as const;
  const obstacleTo = (one: MergeSubject) => attempts.obstacleTo('web', one, async () => undefined);
  attempts.noteUnmerged('web', subject, blocked);
  expect(await obstacleTo({ ...subject, mergeability: 'mergeable' })).toBeUndefined();
  attempts.noteMessage('web', subject.head);
  // The request has failed, and the host shows what it had shown before.
  expect(await obstacleTo(subject)).toBe('a check is missing');
  expect(attempts.noteUnmerged('web', subject, blocked)).toBe(40_000);
});

test('a rule that closes or opens its publication, and a base where that counts, are reasons for another attempt', async () => {
  const attempts = new MergeAttempts(new ManualClock());
  const subject: MergeSubject = { number: 1, head: 'a'.repeat(40), updatedAt: '2026-01-01T00:00:00Z', method: 'merge' };
  const isDue = async (one: MergeSubject) =>
    (await attempts.obstacleTo('web', one, async () => undefined)) === undefined;
  const closed = { ...subject, closedBy: 'the window is closed' };
  attempts.noteUnmerged('web', closed, { obstacle: undefined, text: 'the window is closed' });
  expect([await isDue(closed), await isDue(subject)]).toEqual([false, true]);
  attempts.noteUnmerged('web', { ...subject, base: 'one' }, { obstacle: 'behind', text: 'out of date' });
  expect([await isDue({ ...subject, base: 'one' }), await isDue({ ...subject, base: 'two' })]).toEqual([false, true]);
});

test('the host is known not to have found out since it said so first, at the same head', () => {
  const clock = new ManualClock();
  const attempts = new MergeAttempts(clock);
  const subject: MergeSubject = { number: 1, head: 'a'.repeat(40), updatedAt: '2026-01-01T00:00:00Z', method: 'merge' };
  const unknown = { obstacle: 'unknown', text: 'not computed yet' } as const;
  const pauses = [1, 2, 3].map(() => {
    const pause = attempts.noteUnmerged('web', subject, unknown);
    clock.advance(pause);
    return pause;
  });
  expect(pauses).toEqual([5000, 10_000, 20_000]);
  const changed = { ...subject, updatedAt: '2026-01-01T00:00:01Z' };
  expect(attempts.noteUnmerged('web', changed, unknown)).toBe(5000);
  expect(attempts.unknownMs('web', changed)).toBe(35_000);
  expect(attempts.unknownMs('web', { ...changed, head: 'b'.repeat(40) })).toBe(0);
  attempts.noteUnmerged('web', changed, { obstacle: 'blocked', text: 'a check is missing' });
  expect(attempts.unknownMs('web', changed)).toBe(0);
});
