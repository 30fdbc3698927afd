import type { Oid } from '../../../git/git-repository.ts';
import { mainRef, RECORD_REFS, type RepositoryLayout, recordRef } from '../../model/identity/layout.ts';
import type { Lifecycle } from '../../model/revision/revision-state.ts';
import { PACKAGE, PATH } from './package-data.ts';

/** A revision as a ref shows it. */
export interface ListedRevision {
  readonly workspace: string;
  readonly lifecycle: Lifecycle;
  readonly revision: number;
  readonly commit: Oid;
  readonly tag: string | undefined;
}

export const LAYOUT: RepositoryLayout = { branch: 'main', directory: 'dir', recordPrefix: RECORD_REFS };
export const MAIN = mainRef(LAYOUT);

export const revisionKeyOf = (workspace: string) => ({ repository: 'r', package: PACKAGE, workspace });
export const recordRefOf = (workspace: string) => recordRef(LAYOUT, PATH, workspace);
