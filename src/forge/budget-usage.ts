/** The primary limit of an account. */
export interface Rate {
  /** Requests that the account may still send until `resetAt`. */
  readonly remaining: number;
  readonly limit: number | undefined;
  /** Milliseconds since 1970. */
  readonly resetAt: number | undefined;
}

/** What an account of a host has used of its limits, in all its repositories. */
export interface BudgetUsage {
  /** By the last response; undefined where the host does not report it. */
  readonly rate: Rate | undefined;
  /** Requests that created content in the last minute, and hour; 0 on hosts that do not limit them. */
  readonly content: { readonly minute: number; readonly hour: number };
  /** Milliseconds until requests are sent again; 0 if they are. */
  readonly pausedMs: number;
}
