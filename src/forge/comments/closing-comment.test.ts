import { expect, test } from 'vitest';
import { closingOf } from './closing-comment.ts';

const written = (author: string, minute: number, body: string) => ({
  ...{ author, body },
  at: `2026-01-01T00:0${minute}:00Z`,
});

test('the reason of an end is the last comment of the user who closed', () => {
  const comments = [written('bob', 1, 'no'), written('bob', 2, 'not now'), written('anna', 3, 'a pity')];
  expect(closingOf('bob', comments, undefined)).toEqual({ by: 'bob', comment: 'not now' });
  expect(closingOf('carl', comments, undefined)).toEqual({ by: 'carl', comment: undefined });
});

test('a command is no reason, and neither is a comment from before it was opened again', () => {
  const comments = [written('bob', 1, 'later'), written('bob', 3, '/sluice set example.com/Tested True fine')];
  expect(closingOf('bob', comments, undefined).comment).toBe('later');
  expect(closingOf('bob', comments, '2026-01-01T00:02:00Z').comment).toBeUndefined();
  const again = [...comments, written('bob', 4, 'no more')];
  expect(closingOf('bob', again, '2026-01-01T00:02:00Z').comment).toBe('no more');
});
