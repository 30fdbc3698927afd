/** What hosts limit apart from each other, as GitHub names it; those without GraphQL have `core` alone. */
export type LimitedResource = 'core' | 'graphql';

/** The primary limit of an account. */
export interface Rate {
  /** Requests, of GraphQL points, that the account may still use until `resetAt`. */
  readonly remaining: number;
  readonly limit: number | undefined;
  /** Milliseconds since 1970. */
  readonly resetAt: number | undefined;
}

/** What an account of a host has used of its limits, in all its repositories. */
export interface BudgetUsage {
  /** Of what requests were for. */
  readonly resources: readonly {
    readonly resource: LimitedResource;
    /** By the last response; undefined where the host does not report it. */
    readonly rate: Rate | undefined;
    /** Milliseconds until requests are sent again; 0 if they are. */
    readonly pausedMs: number;
  }[];
  /** Requests that created content in the last minute, and hour; 0 on hosts that do not limit them. */
  readonly content: { readonly minute: number; readonly hour: number };
}
