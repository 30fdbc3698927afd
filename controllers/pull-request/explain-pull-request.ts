import type { Explainer } from '../../src/package/api/explain/explainer.ts';
import type { ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';

/** Users that a message names. */
const MAX_NAMED = 5;

/** Reports where a proposed revision is reviewed, and what a review there does. */
export const pullRequestExplainer: Explainer = {
  explain({ evaluation: { revision, policy } }, { disabled }) {
    const { review, reviewProblem } = policy;
    if (revision.lifecycle !== 'Proposed') return {};
    if (reviewProblem !== undefined) return { reasons: [{ reason: 'NoPullRequest', message: reviewProblem }] };
    if (review === undefined) return {};
    const branch = revision.ref.replace(/^refs\/heads\//, '');
    const stopped = disabled.includes('pull-request')
      ? ', but the controller pull-request is disabled, so that nothing there has an effect'
      : `; ${effectOf(review)}`;
    const message = `policy ${review.policy} has it reviewed in the pull request of the branch ${branch} on ${new URL(review.forge.api).host}${stopped}`;
    return { reasons: [{ reason: 'ReviewedInPullRequest', message }] };
  },
};

function effectOf({ publishOn, approvers }: ReviewPolicy): string {
  if (publishOn === 'merge') return 'its merge there publishes it if its gates are open, and is out of band otherwise';
  if (publishOn === 'approval') return 'requested changes there block its approval';
  if (approvers.length === 0) return 'no review publishes it, since spec.review.approvers is empty';
  const named = approvers.slice(0, MAX_NAMED).map(({ user }) => user);
  const more = approvers.length > MAX_NAMED ? ` and ${approvers.length - MAX_NAMED} others` : '';
  return `an approving review by one of ${named.join(', ')}${more} publishes it once its gates are open`;
}
