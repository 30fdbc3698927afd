import type { ForgeIssues } from './forge-issues.ts';
import type { ForgeMerging } from './forge-merging.ts';
import type { MergeQueue } from './merge-queue.ts';

/**
 * One repository on a host with pull requests.
 *
 * Contract of all methods:
 * - They read the present state of the host, never a memory of it.
 * - They reject with a SluiceError: `NotFound` (no such repository or pull request, or the token cannot read it), `Unauthenticated` (the token
 *   is not valid, or the App is not installed in the repository), `Refused` (the token lacks a permission, or a rule of the host forbids it), `TooManyRequests` (with
 *   ForgeErrorDetails), `Conflict`, `InvalidInput` (the host rejects a value), `Unavailable` and `Timeout` (the request may have been
 *   executed; repeat it), `Corrupt` (a response without the documented form), `LimitExceeded` (a too long
 *   response, too many reviews, or more than the host reads for one request). No message contains a token.
 * - Writes are safe to repeat: `open` returns the open pull request, `setChecks`, `addLabels` and `setComment` write only what is missing.
 * - Texts of users (titles, bodies, comments, names) are returned as they are; the caller neutralises them before it writes them anywhere.
 */
export interface Forge extends ForgeMerging {
  /** Whether `open` adds the labels with the same request. */
  readonly opensWithLabels: boolean;

  /** Whether `state` reads those that are requested at the same time with few requests. */
  readonly batchesReads: boolean;

  /** Whether users can open a closed pull request again whose branch is gone. Everywhere they can once the branch is there again as it was. */
  readonly reopensWithoutBranch: boolean;

  /** Undefined where the host has no merge queues. */
  readonly mergeQueue?: MergeQueue;

  /** Undefined where the host has no issues. */
  readonly issues?: ForgeIssues;

  /** All open pull requests to a branch, at most `limit` of those that changed last. Leaves out those that `get` rejects as too long. */
  listOpen(base: string, limit: number, signal: AbortSignal): Promise<readonly PullRequest[]>;

  /** Pull requests in any state that changed at or after `since` (RFC 3339), changed last first, at most `limit`. Leaves out the same. */
  listUpdated(since: string, limit: number, signal: AbortSignal): Promise<readonly PullRequest[]>;

  /**
   * The pull request from a branch of the repository itself to `base`: the open one, else the one that was opened last; undefined if there is
   * none. A host that cannot search by branches reads at most `MAX_ENDED` of those that have ended.
   */
  find(head: string, base: string, signal: AbortSignal): Promise<PullRequest | undefined>;
  /** Rejects with NotFound, and with LimitExceeded where its texts are too long. */
  get(number: number, signal: AbortSignal): Promise<PullRequest>;

  /** A pull request, its reviews and whether it waits in a merge queue, read at the same time. Rejects as `get` and `reviews` do. */
  state(number: number, signal: AbortSignal): Promise<PullState>;

  /** Opens a pull request, or returns the open one from `head` to `base` as it is. */
  open(wanted: NewPullRequest, signal: AbortSignal): Promise<PullRequest>;

  /** Changes the given fields only. */
  update(number: number, change: PullRequestChange, signal: AbortSignal): Promise<PullRequest>;

  /**
   * All submitted reviews with a verdict, oldest first; of each author the last one suffices, and earlier ones may be missing. Reviews of teams
   * and comments are left out. Never a part of them: rejects with LimitExceeded where there are too many to read.
   */
  reviews(number: number, signal: AbortSignal): Promise<readonly Review[]>;

  /** What decides whether a merge is an approval. Rejects as `reviews` does. */
  mergedState(pull: PullRequest, signal: AbortSignal): Promise<MergedState>;

  /**
   * Who closed a closed pull request or issue, and the last comment of this user on it since `COMMENT_AGE_MS` before, as `closingOf` selects it;
   * undefined where the host does not know.
   */
  closing(ended: Pick<PullRequest, 'number' | 'closedAt'>, signal: AbortSignal): Promise<Closing | undefined>;

  /** Requests reviews. Returns those that the host refused, with its reason; the others are requested. */
  requestReviewers(
    number: number,
    reviewers: { readonly users: readonly string[]; readonly teams: readonly string[] },
    signal: AbortSignal,
  ): Promise<readonly { readonly name: string; readonly reason: string }[]>;

  /** Adds labels, created where they do not exist. Others stay. */
  addLabels(pull: PullRequest, labels: readonly string[], signal: AbortSignal): Promise<void>;

  /**
   * Sets checks of a commit, by name. A check that has the same state, title, text and annotations already is left alone. With `isFirst` the
   * commit has none of them yet, so that the host need not be read; if it has one all the same, it is written once more.
   */
  setChecks(
    commit: string,
    checks: readonly Check[],
    signal: AbortSignal,
    options?: { readonly isFirst: boolean },
  ): Promise<void>;

  /**
   * Comments of the conversation of a pull request or an issue that were written or changed at or after `since` (RFC 3339), in the order in
   * which they were written; at most `limit`, which are the first ones. Comments on lines of files and texts of reviews are left out.
   */
  comments(number: number, since: string, limit: number, signal: AbortSignal): Promise<readonly Comment[]>;

  /**
   * Whether a comment that `comments` returned was never edited, also within the second in which it was written; undefined where the host does not
   * report that.
   */
  isAsWritten(comment: Comment, signal: AbortSignal): Promise<boolean | undefined>;

  /**
   * Has one comment of Sluice about a topic (lower-case letters, digits and hyphens) in the conversation of a pull request or an issue: creates
   * it, or changes its text in place. Only comments of the user or App that Sluice authenticates as are changed: others can copy its invisible
   * marker. `body` is shortened to what hosts permit. Returns the comment.
   */
  setComment(number: number, topic: string, body: string, signal: AbortSignal): Promise<Comment>;

  /** The comment that `setComment` has written about a topic; undefined if there is none. */
  findComment(number: number, topic: string, signal: AbortSignal): Promise<Comment | undefined>;

  /** Whether a user may push to the repository. Undefined where the host does not report it to this token, which is no permission. */
  mayWrite(user: string, signal: AbortSignal): Promise<boolean | undefined>;

  /**
   * Whether a user is an active member of a team, `<organization>/<name of the team>` in the form of addresses. False where the host knows no such
   * membership: GitHub has the same response for a team that does not exist. Rejects with NotFound for a team that is known not to exist.
   */
  isTeamMember(team: string, user: string, signal: AbortSignal): Promise<boolean>;

  /** Ends connections. Calls in progress reject. */
  close(): Promise<void>;
}

/** A comment that explains why a pull request was closed is at most this much older than the end. */
export const COMMENT_AGE_MS = 15 * 60_000;

export interface ForgeErrorDetails {
  /** Milliseconds that the host requires to wait. */
  readonly retryAfterMs?: number | undefined;
  /** HTTP status, if there was a response. */
  readonly status?: number | undefined;
}

export interface PullRequest {
  readonly number: number;
  /** Address of its page. */
  readonly url: string;
  readonly state: 'open' | 'merged' | 'closed';
  readonly title: string;
  readonly body: string;
  /** Login of the user who opened it. */
  readonly author: string;
  readonly head: {
    /** Name of the branch, without `refs/heads/`. */
    readonly branch: string;
    readonly commit: string;
    /** False for a head in a fork, where the fork is gone, and for a head that was pushed to no branch. */
    readonly isSameRepository: boolean;
  };
  readonly base: {
    readonly branch: string;
    /** Why no merge into it will be of the user whom the host reports, for sure; undefined where one can be. */
    readonly unsureMerger?: string;
  };
  readonly labels: readonly string[];
  /** False where the host states that its conversation has no comment, apart from reviews. */
  readonly hasComments?: boolean;
  /** Set once merged: the resulting commit on the base, and the login of the user who merged, which lists may not have before `get` has. */
  readonly merged?: {
    readonly commit: string;
    readonly by: string | undefined;
    /** A commit of the base from before the merge, where the host reports one: for merges that make no commit of their own. */
    readonly base?: string;
    /** `base` is the last commit that the branch had in common with the base at the merge, not an earlier one from when the branch was pushed. */
    readonly isMergeBase?: boolean;
  };
  /** Set once closed or merged, RFC 3339. */
  readonly closedAt?: string;
  /** RFC 3339. */
  readonly createdAt: string;
  /** RFC 3339, in whole seconds. Later for each review, comment, label, text and commit, but not for checks. */
  readonly updatedAt: string;
}

export interface PullState {
  readonly pull: PullRequest;
  /** As of `reviews`. */
  readonly reviews: readonly Review[];
  /** It waits in a merge queue of the host, which removes it when another commit becomes its head. Default: false. */
  readonly isQueued?: boolean;
}

export interface MergedState {
  /** As of `reviews`, but as `withRequestsAtMerge` has them. */
  readonly reviews: readonly Review[];
  /**
   * Set where a user had scheduled that the host merges the pull request, and had not taken that back: the host merges what the head is then. A merge
   * by hand in spite of a schedule cannot be distinguished from it.
   */
  readonly scheduled?: ScheduledMerge;
  /** Why the user whom the host reports as who merged may have decided nothing about it; undefined where that user merged. */
  readonly unsureMerger?: string;
}

/** A merge that the host makes by itself, once its rules permit it. */
export interface ScheduledMerge {
  /** Login of the user who scheduled it; undefined where the host does not report it. */
  readonly by: string | undefined;
  /** RFC 3339. */
  readonly at: string;
  /** The head for which it was scheduled; undefined where the host does not report it, and where it is not sure. */
  readonly commit: string | undefined;
}

/** Names of branches, without `refs/heads/`. */
export interface NewPullRequest {
  readonly head: string;
  readonly base: string;
  readonly title: string;
  readonly body: string;
  /** Where the forge `opensWithLabels`; created where they do not exist. */
  readonly labels?: readonly string[];
}

export interface PullRequestChange {
  readonly title?: string;
  readonly body?: string;
  /** `closed`: one that was closed already stays so. `open` opens a closed one again, and rejects where the host does not permit that. */
  readonly state?: 'closed' | 'open';
}

export interface Review {
  readonly id: string;
  /** Login. */
  readonly author: string;
  readonly state: 'approved' | 'changes-requested' | 'dismissed';
  /** The reviewed commit; undefined where the host does not know it any more, or the base was changed since an approving one. */
  readonly commit: string | undefined;
  readonly url: string;
  /** RFC 3339. */
  readonly submittedAt: string;
}

export interface Closing {
  /** Login. */
  readonly by: string;
  readonly comment: string | undefined;
  /**
   * The host closed it by itself, in the name of the user who had removed a branch with the name of its head: it may do so later, for a removal from
   * before it was opened. False where the host does not report that.
   */
  readonly isByRemoval?: boolean;
}

export interface Comment {
  /** Increases with the time of writing. */
  readonly id: string;
  /** Where the host has global ids. */
  readonly globalId?: string | undefined;
  /** Login; empty where the user does not exist any more. */
  readonly author: string;
  /** The beginning of its text, up to `MAX_COMMENT_CHARACTERS`, with line feeds between lines. */
  readonly body: string;
  readonly url: string;
  /** RFC 3339. */
  readonly createdAt: string;
  /** RFC 3339. Later than `createdAt` once the text was changed. */
  readonly updatedAt: string;
}

export interface Check {
  /** Static: rules for branches name it. */
  readonly name: string;
  readonly state: 'pending' | 'success' | 'failure';
  /** One line; shortened to what the host permits. */
  readonly title: string;
  /** Details in Markdown, shortened to `MAX_CHECK_TEXT_CHARACTERS`. A host that has no place for them gets the check with a link to `url`. */
  readonly text?: string;
  /** Address of a page that has the details too. */
  readonly url?: string;
  /**
   * What it is about at lines of files, at most `MAX_ANNOTATIONS`. A host that cannot show them there gets the check with a link to the first
   * one.
   */
  readonly annotations?: readonly Annotation[];
}

/** GitHub permits 64 kB, of which a character takes up to three bytes. */
export const MAX_CHECK_TEXT_CHARACTERS = 20_000;

/** Of one check. */
export const MAX_ANNOTATIONS = 200;

/** A remark of a check at a line of a file. */
export interface Annotation {
  /** From the root of the repository. */
  readonly path: string;
  /** From 1. */
  readonly line: number;
  readonly level: 'failure' | 'warning' | 'notice';
  /** A few words. */
  readonly title: string;
  readonly message: string;
}
