import { cleanAddress } from '../clean-address.ts';
import type { PullRequest, Review } from '../forge.ts';
import { unsureMergerOf } from './gitea-merge.ts';
import type { GiteaPull, GiteaReview } from './gitea-schemas.ts';

const REVIEW_STATES: Readonly<Record<string, Review['state']>> = {
  APPROVED: 'approved',
  REQUEST_CHANGES: 'changes-requested',
};

/** A pull request of Gitea in the form of all hosts. */
export function pullOf(pull: GiteaPull): PullRequest {
  const { merged, merge_commit_sha: commit, merged_by: by, closed_at: closedAt, head, base, comments } = pull;
  const { created_at: createdAt, updated_at: updatedAt, merge_base: before } = pull;
  const unsureMerger = unsureMergerOf(base.repo ?? {});
  return {
    number: pull.number,
    url: cleanAddress(pull.html_url),
    state: merged ? 'merged' : pull.state === 'open' ? 'open' : 'closed',
    title: pull.title,
    body: pull.body ?? '',
    author: pull.user?.login ?? '',
    // `ref` is not the name of the branch once that was removed. A push to refs/for/<branch>, which needs no right to push, is in no branch.
    head: {
      branch: head.label,
      commit: head.sha,
      isSameRepository: head.repo_id === base.repo_id && head.label !== '',
    },
    base: { branch: base.ref, ...(unsureMerger === undefined ? {} : { unsureMerger }) },
    labels: (pull.labels ?? []).map(({ name }) => name),
    ...(merged
      ? { merged: { commit: commit ?? '', by: by?.login, ...(before ? { base: before, isMergeBase: true } : {}) } }
      : {}),
    ...(closedAt === undefined || closedAt === null ? {} : { closedAt }),
    ...(typeof comments === 'number' ? { hasComments: comments > 0 } : {}),
    ...{ createdAt, updatedAt },
  };
}

/** The same for a review; undefined for one that is no verdict, or of no user. */
export function reviewOf({ id, user, state, dismissed, ...review }: GiteaReview): Review | undefined {
  const verdict = REVIEW_STATES[state];
  if (verdict === undefined || user === undefined || user === null) return undefined;
  const { commit_id: commit, html_url: url, submitted_at: submittedAt } = review;
  return {
    id: String(id),
    author: user.login,
    state: dismissed === true ? 'dismissed' : verdict,
    commit: commit === undefined || commit === null || commit === '' ? undefined : commit,
    url: cleanAddress(url),
    submittedAt: submittedAt ?? '',
  };
}

/** Selects the pull requests from a branch of the repository itself to another one. */
export function isFor(head: string, base: string) {
  return (pull: PullRequest): boolean =>
    pull.head.isSameRepository && pull.head.branch === head && pull.base.branch === base;
}
