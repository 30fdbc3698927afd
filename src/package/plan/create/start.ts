import type { Oid, TreeEdit } from '../../../git/git-repository.ts';
import type { OverwrittenBy } from '../../merge/still-overwritten.ts';
import type { RevisionRecord, Verdict } from '../../model/record/record.ts';

/** The initial state of a draft. */
export interface Start {
  /** First line of its commit. */
  readonly subject: string;
  readonly task: unknown;
  readonly edits: ReadonlyMap<string, TreeEdit>;
  /** Those that are carried over; undefined if the creator of the draft counts as the issuer of the conditions in the files. */
  readonly verdicts?: readonly Verdict[];
  readonly source?: NonNullable<RevisionRecord['source']>;
  /** Tree of the published revision that the content is derived from. */
  readonly basedOn?: Oid;
  /** What the edits overwrite. */
  readonly overwritten?: OverwrittenBy;
}
