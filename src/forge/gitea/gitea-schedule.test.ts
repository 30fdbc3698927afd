import { expect, test } from 'vitest';
import { scheduledIn } from './gitea-schedule.ts';
import type { Timeline } from './gitea-schemas.ts';

const AT = '2026-01-01T00:00:00Z';
const entry = (type: string, login = 'bob', body = ''): Timeline => ({ type, user: { login }, body, created_at: AT });
const push = (...commits: string[]) =>
  entry('pull_push', 'mallory', JSON.stringify({ is_force_push: false, commit_ids: commits }));
const forcePush = (from: string, to: string) =>
  entry('pull_push', 'mallory', JSON.stringify({ is_force_push: true, commit_ids: [from, to] }));
const SCHEDULED = entry('pull_scheduled_merge');
const CANCELLED = entry('pull_cancel_scheduled_merge');
const OTHER = entry('comment', 'carl', 'a text');
const scheduled = (commit: string | undefined) => ({ by: 'bob', at: AT, commit });

test.each<[string, readonly Timeline[], ReturnType<typeof scheduledIn>]>([
  ['none', [push('a'), OTHER], undefined],
  ['one that was taken back', [push('a'), SCHEDULED, CANCELLED], undefined],
  ['the head at its time', [push('a', 'b'), OTHER, SCHEDULED, OTHER], scheduled('b')],
  ['the head at its time, not a later one', [push('a'), SCHEDULED, push('b'), entry('merge_pull')], scheduled('a')],
  ['the last one', [push('a'), SCHEDULED, CANCELLED, push('b'), SCHEDULED], scheduled('b')],
  ['the head after a force push', [push('a'), push('c'), forcePush('a', 'c'), SCHEDULED], scheduled('c')],
  ['the head where a later one stays', [push('a'), SCHEDULED, push('b'), forcePush('b', 'b')], scheduled('a')],
  // It removes commits from the entries before it.
  ['no head before a force push', [push('a'), SCHEDULED, push('c'), forcePush('b', 'c')], scheduled(undefined)],
  ['no head before another target', [push('a'), SCHEDULED, entry('change_target_branch')], scheduled(undefined)],
  ['no head where no push is known', [SCHEDULED], scheduled(undefined)],
  ['no head of a push without commits', [push('a'), push(), SCHEDULED], scheduled(undefined)],
  ['no head of an unknown entry', [push('a'), entry('pull_push', 'bob', '{'), SCHEDULED], scheduled(undefined)],
  ['no head before an unknown entry', [push('a'), SCHEDULED, entry('pull_push', 'bob', '[]')], scheduled(undefined)],
])('the schedule of a merge in a conversation of Gitea: %s', (_, timeline, expected) => {
  expect(scheduledIn(timeline)).toEqual(expected);
});
