import type { Oid } from '../../../git/git-repository.ts';
import type { ForeignFiles } from '../../model/revision/revision-state.ts';

/** A head that is to be merged into the main branch. */
export interface MergedHead {
  readonly commit: Oid;
  /** Folders of the packages that it proposes, from the root of the repository. */
  readonly paths: readonly string[];
  /** A commit of the main branch that the branch is said to be based on; what else it is based on is found out. */
  readonly base?: Oid | undefined;
}

/** Finds what a merge of a branch changes on the main branch outside of the packages that the branch proposes. */
export interface ForeignFileReader {
  /** Of a merge that was not made yet, into this head of the main branch; undefined if there is nothing. */
  ofHead(head: MergedHead, main: Oid): Promise<ForeignFiles | undefined>;
  /** Of a merge that the host made; `base`: a commit of the main branch from before it, where the host reports one. */
  ofMerge(head: MergedHead, commit: Oid, base: Oid | undefined): Promise<ForeignFiles | undefined>;
}
