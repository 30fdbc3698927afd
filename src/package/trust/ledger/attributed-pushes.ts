import type { Oid } from '../../../git/git-repository.ts';

/** A push to a draft or proposed branch, as the Git host reported it in a webhook. */
export interface AttributedPush {
  /** Id of the repository in Git, as statements name it. */
  readonly repository: string;
  /**
   * `<namespace>/<name>` of the Repository whose webhook reported it. A report counts for that registration alone: the operator of
   * another registration of the same repository has the secret of another webhook.
   */
  readonly registration: string;
  /** Full name. */
  readonly ref: string;
  /** Head of the branch before the push; undefined for a new branch. */
  readonly before: Oid | undefined;
  /** Head of the branch after the push. */
  readonly after: Oid;
  /** The account at the host. */
  readonly user: string;
  /** Kind of the host, such as `github`. */
  readonly provider: string;
  /** Time at which the report arrived, RFC 3339. */
  readonly at: string;
}

/** A stored report. */
export interface KeptPush extends AttributedPush {
  /**
   * True if the revision was deleted afterwards: who brought the same commit again is not known by this report. Its user contributed all
   * the same.
   */
  readonly isSuperseded: boolean;
}

/**
 * Push reports of Git hosts. They are stored next to the ledger, in a separate file: a push without a report counts as pushed by
 * an unknown user, so they need no backup. Shared by all processes on one data folder.
 */
export interface AttributedPushes {
  /** Keeps a report; the oldest ones make way. Durable when it returns. The same report again changes nothing, unless it was superseded. */
  note(push: AttributedPush): void;
  /** Marks the reports on branches whose revision was deleted. Durable when it returns. */
  supersede(place: Pick<AttributedPush, 'repository' | 'registration'>, refs: readonly string[]): void;
  /** The latest reports on a branch, newest first. */
  latest(place: Pick<AttributedPush, 'repository' | 'registration' | 'ref'>): readonly KeptPush[];
  /** Records that a commit of an unknown pusher was read as the tip of a branch. The first record of a commit stays. Durable when it returns. */
  noteLook(look: Pick<AttributedPush, 'repository' | 'registration' | 'ref'> & { readonly commit: Oid }): void;
  /** The branch at whose tip a commit was read first; undefined if it never was. */
  firstLook(look: Pick<AttributedPush, 'repository' | 'registration'> & { readonly commit: Oid }): string | undefined;
  /** Releases the resources. */
  close(): void;
}

/** Reports on one branch that are kept: more of them at a time occur only on a branch that is moved back and forth. */
export const MAX_PUSHES_OF_REF = 50;
/** Maximum number of stored reports for one registration, so that registrations do not displace each other's. */
export const MAX_PUSHES_OF_REGISTRATION = 10_000;
/** Maximum number of stored looks at commits for one registration. */
export const MAX_LOOKS_OF_REGISTRATION = 10_000;
