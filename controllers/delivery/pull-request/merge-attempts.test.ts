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
  attempts.noteRefused('east', subject, { obstacle: 'blocked', text: 'a check is missing' });
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
    attempts.noteRefused('east', subject, { obstacle: 'blocked', text: 'a check is missing' });
    const pause = attempts.dueMs('east') ?? 0;
    pauses.push(pause / 1000);
    clock.advance(pause - 1);
    expect(await isDue()).toBe(false);
    clock.advance(1);
    expect(await isDue()).toBe(true);
  }
  expect(pauses).toEqual([20, 40, 80, 160, 320, 600, 600, 600]);
  attempts.noteRefused('east', subject, { obstacle: 'blocked', text: 'a check is missing' });
  clock.advance(5000);
  attempts.noteMessage('east');
  expect(attempts.dueMs('east')).toBe(15_000);
  clock.advance(15_000);
  expect([await isDue(), attempts.dueMs('east')]).toEqual([true, undefined]);
  // What a host refuses for good is not asked for by its messages.
  attempts.noteRefused('east', subject, { obstacle: 'method', text: 'it is not allowed' });
  attempts.noteMessage('east');
  expect(attempts.dueMs('east')).toBe(600_000);
});
