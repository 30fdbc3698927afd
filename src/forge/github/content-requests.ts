import type { ContentLimits } from '../http/forge-budget.ts';
import type { Method } from '../http/forge-response.ts';

/** Those of which GitHub's description of its API states that creating content too quickly is limited; as far as Sluice sends them. */
const CONTENT = [
  /^POST .*\/repos\/[^/]+\/[^/]+\/(?:pulls|issues)$/,
  /^POST .*\/repos\/[^/]+\/[^/]+\/issues\/\d+\/comments$/,
  /^POST .*\/repos\/[^/]+\/[^/]+\/pulls\/\d+\/(?:requested_reviewers|reviews)$/,
  /^PUT .*\/repos\/[^/]+\/[^/]+\/pulls\/\d+\/merge$/,
];

/** Whether GitHub counts a request as one that creates content. Checks, statuses and labels notify no user, and are none. */
function isContentRequest(method: Method, url: string): boolean {
  return CONTENT.some((pattern) => pattern.test(`${method} ${url.split('?', 1)[0]}`));
}

/** GitHub's limits of requests that create content. */
export const GITHUB_CONTENT: ContentLimits = { perMinute: 80, perHour: 500, counts: isContentRequest };
