import type { PullRequest } from '../../../src/forge/forge.ts';
import type { RevisionRecord } from '../../../src/package/model/record/record.ts';
import { proposalsIn } from '../text/section.ts';

/**
 * Whether a pull request of the branch of a proposal that has ended was the one of this proposal. Users may edit its body, so that the marker in it may
 * be gone or another one. Then a merge is of the proposal if it was known as its one, or was merged since it was proposed, or is of this commit
 * and no earlier proposal can have had it.
 */
export function isOfProposal(
  {
    state,
    body,
    number,
    head,
    closedAt = '',
  }: Pick<PullRequest, 'state' | 'body'> &
    Partial<Pick<PullRequest, 'number' | 'closedAt'>> & { readonly head: Pick<PullRequest['head'], 'commit'> },
  about: {
    readonly proposal: string;
    readonly evaluation: {
      readonly revision: { readonly commit: string };
      readonly record: Pick<RevisionRecord, 'steps'>;
    };
    readonly known: { readonly proposal: string; readonly pull: { readonly number: number } } | undefined;
  },
): boolean {
  const { proposal, known, evaluation } = about;
  if (state === 'open') return false;
  const marked = proposalsIn(body);
  if (marked.includes(proposal)) return true;
  if (state !== 'merged') return false;
  if (known !== undefined && known.pull.number === number && known.proposal === proposal) return true;
  const proposals = evaluation.record.steps.filter(({ action }) => action === 'propose');
  // With the marker of an earlier one it was merged before, whatever the clock of the host is.
  if (marked.length === 0 && Date.parse(closedAt) >= Date.parse(proposals.at(-1)?.at ?? '')) return true;
  // One that a user has pushed has no step.
  return head.commit === evaluation.revision.commit && proposals.length <= 1;
}
