import type { FetchOptions, RefChange } from '../../../git/git-repository.ts';

const TAGS = '+refs/tags/*:refs/tags/*';
const OTHERS = ['+refs/heads/*:refs/heads/*', '+refs/sluice/*:refs/sluice/*'] as const;

/** A mirror has the same refs as its remote. */
export const MIRROR_REFSPECS: readonly string[] = [...OTHERS, TAGS];

/**
 * A poll of branches and records. Tags are many; a publication moves the main branch too, and who removes a revision also removes
 * its branch or record. What a plain push of a tag alone brings is seen by the next poll of everything.
 */
export function branchesFirst(main: string): Pick<FetchOptions, 'refspecs' | 'later'> {
  const isNeeded = (changes: readonly RefChange[]) =>
    changes.some(({ name, after }) => name === main || after === undefined);
  return { refspecs: OTHERS, later: { refspecs: [TAGS], isNeeded } };
}
