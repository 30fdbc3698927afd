import type { ForgeIssues } from './forge-issues.ts';

/**
 * One repository on a host with pull requests. Implementations: `github/`, `gitea/` (Gitea and Forgejo). All of them pass
 * `forge.conformance.ts`.
 *
 * Contract of all methods:
 * - They read the host's present state, never a memory of it. Conditional requests (ETags) are permitted: an unchanged response counts.
 * - They reject with a ForgeError (see forge-error.ts), whose code says whether to repeat, and when. No message contains a token.
 * - A write that the host may have executed although no response arrived is safe to repeat: `open` returns the existing pull request,
 *   `setChecks`, `ensureComment` and `addLabels` do nothing if there is nothing to do, `merge` reports a pull request that is merged already.
 * - Texts of users (titles, bodies, comments) are returned as they are. The caller neutralises them before it writes them anywhere.
 * - `signal` aborts the request. Each request also has a limit of its own.
 * - Numbers are those of pull requests, as the host shows them.
 */
export interface Forge {
  readonly provider: ForgeProvider;
  /** The address of the host's API, for messages. Contains no credentials. */
  readonly api: string;

  /** The repository. Its `id` does not change when it is renamed or transferred. Rejects with NotFound if the token cannot read it. */
  repository(options?: CallOptions): Promise<ForgeRepository>;

  /** The rules for pushes and merges to a branch; `isProtected: false` if there are none, or if the token cannot read them. */
  branchRules(branch: string, options?: CallOptions): Promise<BranchRules>;

  /** The open pull request from `head` to `base` of this repository; else the one that was changed last; undefined without any. */
  find(branches: Branches, options?: CallOptions): Promise<PullRequest | undefined>;

  /** Rejects with NotFound. */
  get(number: number, options?: CallOptions): Promise<PullRequest>;

  /**
   * Several pull requests in as few requests as the host permits. Those that do not exist are absent.
   */
  getMany(numbers: readonly number[], options?: CallOptions): Promise<ReadonlyMap<number, PullRequest>>;

  /**
   * Pull requests in any state that changed at or after `since` (RFC 3339), changed last first, at most `limit`. `isComplete` is false if
   * there are more. Costs one request if nothing changed.
   */
  listUpdated(
    since: string | undefined,
    limit: number,
    options?: CallOptions,
  ): Promise<{ readonly pullRequests: readonly PullRequest[]; readonly isComplete: boolean }>;

  /** Opens a pull request, or returns the open one from `head` to `base` as it is. Rejects with Refused if the host refuses both. */
  open(wanted: NewPullRequest, options?: CallOptions): Promise<PullRequest>;

  /** Changes the given fields only. A title or body of the same text needs no request if the caller passes none. */
  update(
    number: number,
    change: { readonly title?: string; readonly body?: string },
    options?: CallOptions,
  ): Promise<PullRequest>;

  close(number: number, options?: CallOptions): Promise<void>;

  /** Rejects with Refused where the host does not permit it: merged, or the head branch is gone. */
  reopen(number: number, options?: CallOptions): Promise<void>;

  /**
   * Merges if the head is still at `head`. Never merges another commit. Where the base has a merge queue, adds it to the queue.
   * Reasons not to merge are results and not errors.
   */
  merge(number: number, request: MergeRequest, options?: CallOptions): Promise<MergeResult>;

  /** Reviews that were submitted, oldest first, bounded to the last 500. Comments without a verdict are left out. */
  reviews(number: number, options?: CallOptions): Promise<readonly Review[]>;

  /** Requests reviews. Logins that cannot review are returned with the reason; the others are requested. */
  requestReviewers(
    number: number,
    reviewers: { readonly users: readonly string[]; readonly teams: readonly string[] },
    options?: CallOptions,
  ): Promise<readonly { readonly name: string; readonly reason: string }[]>;

  /** Comments at or after `since` (RFC 3339), oldest first, at most 500. */
  comments(number: number, since: string | undefined, options?: CallOptions): Promise<readonly Comment[]>;

  /**
   * Creates or updates the own comment about a topic, found by an invisible marker, so that each topic has one. Returns its address.
   * `topic` consists of letters, digits, `-`. Only comments by the own user count: a marker in another user's text has no effect.
   */
  ensureComment(number: number, topic: string, body: string, options?: CallOptions): Promise<string>;

  /** Adds labels, created where they do not exist. Others stay. */
  addLabels(number: number, labels: readonly string[], options?: CallOptions): Promise<void>;

  /**
   * Sets checks of a commit, by name. A check that has the same state and texts already is left alone. On hosts without check runs these are
   * commit statuses: `text` and `annotations` are not shown there, `title` is the description.
   */
  setChecks(commit: string, checks: readonly Check[], options?: CallOptions): Promise<void>;

  /** Checks of a commit that any user or app set, by name. Of several of one name the latest. */
  checks(commit: string, options?: CallOptions): Promise<ReadonlyMap<string, SetCheck>>;

  /** What a user may do in the repository; `none` for unknown users. */
  permissionOf(login: string, options?: CallOptions): Promise<Permission>;

  /** True if the user is an active member of a team of the owner. False for teams that do not exist. */
  isTeamMember(team: string, login: string, options?: CallOptions): Promise<boolean>;

  /** What is left of the host's limits for this token, as the last responses stated it. Makes no request. */
  budget(): RateBudget;

  /** Tickets in the same repository. */
  readonly issues: ForgeIssues;

  /** Ends connections. Calls in progress reject. */
  end(): Promise<void>;
}

export type ForgeProvider = 'github' | 'gitea' | 'forgejo';

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Names of branches, without `refs/heads/`. */
export interface Branches {
  readonly head: string;
  readonly base: string;
}

export interface ForgeRepository {
  /** Stable across renames. */
  readonly id: string;
  readonly owner: string;
  readonly name: string;
  /** Address of its page. */
  readonly url: string;
  readonly defaultBranch: string;
  readonly isArchived: boolean;
  /** What the own token may do. */
  readonly permission: Permission;
  readonly mergeMethods: readonly MergeMethod[];
}

export interface BranchRules {
  readonly isProtected: boolean;
  /** The head has to contain the base before it is merged. */
  readonly mustBeUpToDate: boolean;
  readonly hasMergeQueue: boolean;
  /** Names of checks that have to succeed. */
  readonly requiredChecks: readonly string[];
  readonly requiredApprovals: number;
}

export type PullRequestState = 'open' | 'merged' | 'closed';

export interface PullRequest {
  readonly number: number;
  /** Address of its page. */
  readonly url: string;
  readonly state: PullRequestState;
  readonly isDraft: boolean;
  readonly title: string;
  readonly body: string;
  /** Login of the user who opened it. */
  readonly author: string;
  readonly head: {
    /** Name of the branch. */
    readonly branch: string;
    readonly commit: string;
    /** False for a head in a fork, and where the fork is gone. */
    readonly isSameRepository: boolean;
  };
  readonly base: { readonly branch: string; readonly commit: string };
  readonly labels: readonly string[];
  /** Set once merged: the commit on the base that resulted, and the login of the user who merged. */
  readonly merged?: { readonly commit: string; readonly by: string | undefined; readonly at: string };
  /** Set once closed without a merge. The login is undefined where the host does not report it. */
  readonly closed?: { readonly by: string | undefined; readonly at: string };
  /** `unknown` while the host computes it. */
  readonly mergeability: 'clean' | 'conflict' | 'behind' | 'blocked' | 'unknown';
  readonly isQueued: boolean;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface NewPullRequest extends Branches {
  readonly title: string;
  readonly body: string;
}

export type MergeMethod = 'merge' | 'squash' | 'rebase';

export interface MergeRequest {
  /** The commit that the caller judged. */
  readonly head: string;
  readonly method: MergeMethod;
  readonly title?: string;
  readonly message?: string;
}

/**
 * - `merged`: also if it was merged before at the same head;
 * - `queued`: the host merges it later;
 * - `moved`: the head is another commit now;
 * - `wait`: rules are not met yet, or the host still computes; try again later or when something changes;
 * - `conflict`: head and base changed the same lines;
 * - `refused`: the host will not do it, such as a method that is not allowed; an operator has to act.
 */
export type MergeResult =
  | { readonly result: 'merged'; readonly commit: string }
  | { readonly result: 'queued' }
  | { readonly result: 'moved' | 'wait' | 'conflict' | 'refused'; readonly message: string };

export interface Review {
  readonly id: string;
  readonly author: string;
  readonly state: 'approved' | 'changes-requested' | 'dismissed';
  /** The commit that was reviewed; undefined where the host does not know it any more. */
  readonly commit: string | undefined;
  readonly body: string;
  readonly url: string;
  readonly submittedAt: string;
}

export interface Comment {
  readonly id: string;
  readonly author: string;
  readonly body: string;
  readonly url: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  /** By the own user or app. */
  readonly isOwn: boolean;
}

export type CheckState = 'pending' | 'success' | 'failure';

export interface Check {
  /** Static: branch protection names it. */
  readonly name: string;
  readonly state: CheckState;
  /** One line; shortened to what the host permits. */
  readonly title: string;
  /** Markdown; shortened to what the host permits. */
  readonly text?: string;
  /** Address of a page about it. */
  readonly url?: string;
  readonly annotations?: readonly CheckAnnotation[];
}

export interface CheckAnnotation {
  /** Relative to the root of the repository. */
  readonly path: string;
  /** From 1. */
  readonly line: number;
  readonly level: 'notice' | 'warning' | 'failure';
  readonly message: string;
}

export interface SetCheck {
  readonly state: CheckState;
  readonly title: string;
  /** Who set it: login of a user, or `app:<id>`. */
  readonly setBy: string | undefined;
  readonly isOwn: boolean;
}

/** In increasing order. */
export const PERMISSIONS = ['none', 'read', 'write', 'admin'] as const;
export type Permission = (typeof PERMISSIONS)[number];

export interface RateBudget {
  /** Requests left until `resetsAt`; undefined where the host states no limit. */
  readonly remaining: number | undefined;
  readonly resetsAt: string | undefined;
  /** Creations (pull requests, comments, reviews) that the own limits of 80 per minute and 500 per hour still permit now. */
  readonly creations: { readonly minute: number; readonly hour: number };
  /** Requests that were sent since the start, by kind. */
  readonly sent: { readonly reads: number; readonly unchanged: number; readonly writes: number };
}
