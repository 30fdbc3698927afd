import type { PullRequest } from '../../../src/forge/forge.ts';
import { digest } from '../../../src/foundation/text/canonical-json.ts';
import { proposalsIn } from '../../pull-request/text/section.ts';

/** In the marker of a pull request that Sluice closed itself. */
export const ENDED = markOf('ended');

/** The form of the marker that `section.ts` finds. */
export function markOf(...parts: readonly string[]): string {
  return digest(parts.join(' ')).replace(/^.*:/, '').slice(0, 16);
}

/** Whether Sluice has opened a pull request at its head again, or in the place of one that the host did not let it open. */
export function wasReopened({ body, head }: Pick<PullRequest, 'body' | 'head'>): boolean {
  return proposalsIn(body).includes(reopenedMark(head));
}

export function reopenedMark({ commit }: PullRequest['head']): string {
  return markOf('reopened', commit);
}
