import type { Refusal, RevisionState, TransitionRequest } from '../model/revision/revision-state.ts';

/** Files that a message names. */
const MAX_SHOWN_FILES = 5;

/**
 * The reason against a merge of the Git host that would bring, or has brought, other files to the main branch than those of the package: a push of
 * Sluice takes the package alone. An approval that only records a decision is not refused, since the branch can lose these files until the merge.
 */
export function refuseForeign(
  state: Pick<RevisionState, 'name' | 'foreign'>,
  { merged, byMerge, mustSuffice }: Pick<TransitionRequest, 'merged' | 'byMerge' | 'mustSuffice'>,
): Refusal | undefined {
  const { name, foreign } = state;
  const isMerging = byMerge === true && mustSuffice === true;
  if (foreign === undefined || (merged === undefined && !isMerging)) return undefined;
  if (merged !== undefined)
    return { code: 'ForeignFiles', message: `${name} was merged together with ${describeForeign(state)}` };
  return { code: 'ForeignFiles', message: foreignMessage(state) };
}

/** Why the branch must not be merged, with the next step. */
export function foreignMessage(state: Pick<RevisionState, 'name' | 'foreign'>): string {
  const { name } = state;
  const what =
    state.foreign?.isUnknown === true
      ? `it is not known what a merge of the branch of ${name} changes besides its package: it has no commit in common with the main branch near enough, or changes too many files, or some with too long paths`
      : `the branch of ${name} also has ${describeForeign(state)}; its gates and approvals are for the package alone, and a merge by the Git host would bring all of it to the main branch`;
  return `${what}. To base the branch on the main branch with the package alone, use "sluice rpkg rebase ${name} --keep"`;
}

/** In words that end a sentence. */
export function describeForeign({ foreign }: Pick<RevisionState, 'foreign'>): string {
  const { files = [], count = 0, isUnknown } = foreign ?? {};
  if (isUnknown === true) return 'changes outside of its package that could not be found out';
  const more = count - Math.min(files.length, MAX_SHOWN_FILES);
  const shown = `${files.slice(0, MAX_SHOWN_FILES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  return `changes of ${count} ${count === 1 ? 'file' : 'files'} outside of its package (${shown})`;
}
