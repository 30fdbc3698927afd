import { expect, test } from 'vitest';
import { type ReviewPolicy, reviewOf } from './review-policy.ts';

const review: ReviewPolicy = {
  policy: 'web',
  forge: { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge', key: 'token' } },
  publishOn: 'review',
  mergeMethod: 'merge',
  approvers: [],
  reviewers: { users: [], teams: [] },
  labels: [],
  gateChecks: [],
  userPullRequests: 'check',
};

test('one policy applies', () => {
  expect(reviewOf([])).toEqual({});
  expect(reviewOf([review])).toEqual({ review });
});

test('of two policies none applies, whatever their order, and both are named', () => {
  const other = { ...review, policy: 'all' };
  const { reviewProblem } = reviewOf([review, other]);
  expect(reviewProblem).toMatch(
    /^the policies all, web all have spec.review for it, .* no pull request is opened or read;/,
  );
  expect(reviewOf([other, review])).toEqual({ reviewProblem });
});
