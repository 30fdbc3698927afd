import type { Oid, RefChange } from '../../../git/git-repository.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import type { Adoption } from '../../trust/adoption.ts';
import type { Candidate } from '../facts/candidate.ts';
import type { TipFact } from '../facts/tip-fact.ts';

/** One row of the index that changed. */
export interface IndexChange {
  readonly before: PackageRevision | undefined;
  readonly after: PackageRevision | undefined;
}

/** The effects of ref changes, read from Git before anything is changed. */
export interface IndexDelta {
  readonly refs: readonly RefChange[];
  /** The current candidates of changed refs. */
  readonly candidates: ReadonlyMap<string, Candidate | undefined>;
  /** Set if the main branch moved. */
  readonly main: MainDelta | undefined;
  /** Packages whose revisions are all concerned. */
  readonly packages: ReadonlySet<string>;
  /** Records that were read, with the packages whose refs lead to them. */
  readonly records: ReadonlyMap<Oid, string>;
  /** Set if the adoption ref moved. */
  readonly adoption: { readonly present: Adoption | undefined } | undefined;
}

/** The changes of the packages on the main branch, by package; undefined for removed ones. */
export interface MainDelta {
  readonly tip: TipFact | undefined;
  readonly candidates: ReadonlyMap<string, Candidate | undefined>;
}
