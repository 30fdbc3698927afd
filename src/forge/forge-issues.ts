/**
 * Tickets of Sluice: issues of the repository that users close when they have done what a ticket describes. The contract of `Forge` holds here
 * too, and its methods for comments and `closing` take issues as well: a host numbers both in one sequence. Where issues are switched off, the
 * calls reject with NotFound or Refused.
 */
export interface ForgeIssues {
  /**
   * Opens an issue for a topic, or returns the one that has been opened for it, in any state and as it is: what users closed is not opened
   * again. Only issues that the user or App opened which Sluice authenticates as are found: others can copy its invisible marker. Processes that
   * open it at the same time get the same one, and close what they opened besides.
   */
  open(wanted: NewIssue, signal: AbortSignal): Promise<Issue>;
  /** The issue of a topic; undefined if there is none. Rejects with LimitExceeded where more than `MAX_ISSUES` changed since the time. */
  find(topic: IssueTopic, signal: AbortSignal): Promise<Issue | undefined>;
  /** Rejects with NotFound for a pull request too. */
  get(number: number, signal: AbortSignal): Promise<Issue>;
  /** Issues that were opened for topics and changed at or after `since` (RFC 3339), changed last first, at most `limit`. */
  listUpdated(since: string, limit: number, signal: AbortSignal): Promise<readonly Issue[]>;
  /** Changes the given fields only. A new body keeps the topic. */
  update(number: number, change: IssueChange, signal: AbortSignal): Promise<Issue>;
  /** Adds labels, created where they do not exist. Others stay. */
  addLabels(issue: Issue, labels: readonly string[], signal: AbortSignal): Promise<void>;
  /** Adds users whom it is assigned to. Returns those that the host refused, with its reason; others stay. */
  assign(
    issue: Issue,
    users: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly { readonly name: string; readonly reason: string }[]>;
}

/** Issues and pull requests that a search for a topic reads. */
export const MAX_ISSUES = 5000;

export interface IssueTopic {
  /** Identifies what it is about, such as a uid: lower-case letters, digits and hyphens. A user who edits it out of the body ends it. */
  readonly topic: string;
  /** RFC 3339, at or before the time of opening by the clock of the host, so that a search has an end. */
  readonly since: string;
}

export interface NewIssue extends IssueTopic {
  readonly title: string;
  readonly body: string;
}

/** A host that does not record why an issue was closed has `completed` for all of them. */
export type IssueState = 'open' | 'completed' | 'not-planned';

export interface IssueChange {
  readonly title?: string;
  readonly body?: string;
  readonly state?: IssueState;
}

export interface Issue {
  readonly number: number;
  /** Address of its page. */
  readonly url: string;
  readonly state: IssueState;
  readonly title: string;
  /** Without the marker of its topic, with line feeds between lines. */
  readonly body: string;
  /** What Sluice opened it for; undefined for issues of others. */
  readonly topic: string | undefined;
  /** Login of the user who opened it. */
  readonly author: string;
  readonly labels: readonly string[];
  /** Logins. */
  readonly assignees: readonly string[];
  /** Set once closed, RFC 3339. */
  readonly closedAt?: string;
  /** RFC 3339. */
  readonly updatedAt: string;
}
