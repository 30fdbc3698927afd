import type { ObjectKey } from '../../resource/object/object.ts';
import type { Actor } from '../../resource/object/request-context.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { UpstreamReader } from '../upstream/upstream-reader.ts';

export interface RevisionStoreOptions {
  /** Reads packages of repositories that are not registered; without it, only registered ones are cloned from. */
  readonly address?: UpstreamReader['address'];
  /**
   * Checks a proposal at its approval: returns the problem after its publication, and the condition that reports it. Default: no
   * problem.
   */
  readonly approvalProblem?: (
    revision: PackageRevision,
    files: ReadonlyMap<string, Buffer>,
  ) => Promise<{ readonly type: string; readonly message: string } | undefined>;
  /**
   * Called before an approval is decided, with the policies of the revision read; the returned function when it is committed or refused.
   * Approvals that are decided at the same time can thus be counted.
   */
  readonly reserveApproval?: (revision: PackageRevision) => Promise<() => void>;
  /**
   * Whether the user of a recorded approval may still approve, with the groups of that request, in the namespace where it was given. Default:
   * all may.
   */
  readonly mayStillApprove?: (user: Actor, revision: ObjectKey, signal: AbortSignal | undefined) => Promise<boolean>;
  /** True for the id of a repository that is registered and will be opened automatically. Default: none is. */
  readonly isComing?: (repository: string) => boolean;
  /** Opens a repository that a request needs, by its id, if it is not open. Default: repositories are opened apart from requests. */
  readonly open?: (repository: string, purpose: OpenPurpose) => Promise<void>;
  /** Opens those of all repositories that can be opened. */
  readonly openAll?: () => Promise<void>;
}

/** `look`: the last known state suffices if the remote does not respond. */
export type OpenPurpose = 'use' | 'look';
