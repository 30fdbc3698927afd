import { expect, test } from 'vitest';
import { hiddenRefsMessage } from './explain-state.ts';

test('one hidden ref and several are named in correct sentences', () => {
  expect(hiddenRefsMessage(['refs/heads/drafts/a/v1'])).toBe(
    'refs/heads/drafts/a/v1 would have the same name and is not shown; push it under a workspace of its own',
  );
  expect(hiddenRefsMessage(['refs/heads/drafts/a/v1', 'refs/tags/a/v2'])).toMatch(
    /^refs\/heads\/drafts\/a\/v1 and refs\/tags\/a\/v2 would have the same name and are not shown; push each of them /,
  );
});
