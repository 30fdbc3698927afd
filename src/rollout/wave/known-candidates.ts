import type { Candidate } from './observation.ts';

/** Repositories that are registered, that cannot be read, and on which it depends what a plan selects. */
export interface UnreadRepositories {
  /** That of the blueprint of the plan: what was made from it is not known. */
  readonly blueprint: string | undefined;
  /** One of those that the plan may select revisions of. */
  readonly selected: string | undefined;
}

/** The candidates that `list` returns; undefined while what is listed may leave out some of which the plan must not decide that they are gone. */
export function knownCandidates(
  list: () => ReadonlyMap<string, Candidate>,
  { blueprint, selected }: UnreadRepositories,
  isStarted: boolean,
): ReadonlyMap<string, Candidate> | undefined {
  // Later, of the targets of a repository that cannot be read each is unknown by itself.
  const isMissing = blueprint !== undefined || (!isStarted && selected !== undefined);
  return isMissing ? undefined : list();
}
