import { expect, test } from 'vitest';
import { scheduledIn } from './github-schedule.ts';

const MERGE = { mergedAt: '2026-01-01T00:00:09Z', head: 'a' };
const event = (type: string, second: number, login = 'bob') => ({
  ...{ __typename: `${type}Event`, actor: { __typename: 'User', login } },
  createdAt: `2026-01-01T00:00:0${second}Z`,
});
const scheduled = (second: number, commit: string | undefined, by: string | undefined = 'bob') => ({
  ...{ by, at: `2026-01-01T00:00:0${second}Z`, commit },
});

test.each<[string, readonly (ReturnType<typeof event> | null)[], ReturnType<typeof scheduledIn>]>([
  ['none', [], undefined],
  ['auto-merge has no head', [event('AutoMergeEnabled', 1)], scheduled(1, undefined)],
  ['auto-merge by a squash', [event('AutoSquashEnabled', 1)], scheduled(1, undefined)],
  ['auto-merge by a rebase', [event('AutoRebaseEnabled', 1)], scheduled(1, undefined)],
  ['it was disabled', [event('AutoMergeEnabled', 1), event('AutoMergeDisabled', 2)], undefined],
  ['by the merge', [event('AutoMergeEnabled', 1), event('AutoMergeDisabled', 9)], scheduled(1, undefined)],
  [
    'it was enabled again',
    [event('AutoMergeEnabled', 1), event('AutoMergeDisabled', 2), event('AutoMergeEnabled', 3, 'carl')],
    scheduled(3, undefined, 'carl'),
  ],
  ['a user put it into the queue', [event('AddedToMergeQueue', 2)], scheduled(2, 'a')],
  ['twice', [event('AddedToMergeQueue', 2), event('AddedToMergeQueue', 3, 'carl')], scheduled(3, 'a', 'carl')],
  [
    'auto-merge put it there',
    [event('AutoMergeEnabled', 1), event('AutoMergeDisabled', 2), event('AddedToMergeQueue', 2)],
    scheduled(1, undefined),
  ],
  [
    'an event that could not be read',
    [event('AddedToMergeQueue', 2), null],
    { ...scheduled(2, undefined), by: undefined },
  ],
])('the schedule of a merge by GitHub: %s', (_, nodes, expected) => {
  const pageInfo = { hasPreviousPage: false };
  expect(scheduledIn({ pageInfo, nodes: [...nodes] }, MERGE)).toEqual(expected);
});

test('of more events than are read it is not sure', () => {
  const nodes = [event('AutoMergeDisabled', 2)];
  const expected = { ...scheduled(2, undefined), by: undefined };
  expect(scheduledIn({ pageInfo: { hasPreviousPage: true }, nodes }, MERGE)).toEqual(expected);
  expect(scheduledIn({ pageInfo: { hasPreviousPage: false } }, MERGE)).toMatchObject({ commit: undefined });
});
