import type { Review } from '../forge.ts';
import type { Mergeability } from '../forge-merging.ts';

const REVIEWS: Readonly<Record<string, Review['state']>> = {
  APPROVED: 'approved',
  CHANGES_REQUESTED: 'changes-requested',
  DISMISSED: 'dismissed',
};
/** Of which `blocked` and `behind` may not hold for an App that may bypass rules. */
const MERGES: Readonly<Record<string, Mergeability>> = {
  ...{ clean: 'mergeable', unstable: 'mergeable', has_hooks: 'mergeable' },
  ...{ dirty: 'conflict', behind: 'behind', blocked: 'blocked', draft: 'draft' },
};

/** What a review with a verdict is, by the state that the REST API and GraphQL name alike; undefined for others. */
export function reviewStateOf(state: string): Review['state'] | undefined {
  return REVIEWS[state];
}

/** What `mergeable_state` of the REST API, or `mergeStateStatus` of GraphQL, says. With `isKnown` false GitHub still finds out. */
export function mergeabilityOf(state: string, isDraft: boolean, isKnown: boolean): Mergeability {
  if (isDraft) return 'draft';
  return isKnown ? (MERGES[state.toLowerCase()] ?? 'unknown') : 'unknown';
}
