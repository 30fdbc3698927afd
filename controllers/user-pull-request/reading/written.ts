import type { AwaitedComment } from '../../pull-request/commands/edited-comments.ts';
import type { Exhausted } from '../judging/fork-renderer.ts';

/** What was written last, so that nothing is written twice. */
export interface Written {
  /** The commit that got its checks. */
  checks?: string;
  /** Those of the commits of a merge queue. */
  queued?: Map<string, string>;
  /** Its comment; empty while it is not known which one the host has. */
  comment?: string;
  /** The host was searched for the comment of an earlier process, or has no comments. */
  isSearched?: boolean;
  /** Id of the last comment of which all requests for an adoption are known to be carried out or refused. */
  handled?: string;
  /** Address of the last comment that requests the checks again. */
  rerun?: string;
  /** Address of the last comment with a command that is none, which got a reply. */
  unknown?: string;
  /** The last check has found that the host does not have it any more. */
  isGone?: boolean;
  awaited?: AwaitedComment;
  /** The last wait for something of a head that was not fetched. */
  unfetched?: { readonly head: string; readonly waitMs: number };
  exhausted?: Exhausted;
}

/** Makes the next check write everything again. */
export function forgetWritten(written: Written): void {
  delete written.checks;
  delete written.queued;
  delete written.isSearched;
  if (written.comment !== undefined) written.comment = '';
}
