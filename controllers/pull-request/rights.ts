/** Who would do something: a user of Sluice, with the groups that its mapping gives it. */
export interface Subject {
  readonly name: string;
  readonly groups: readonly string[];
}

/** What would be done, in the terms of RBAC. */
export interface Access {
  readonly verb: string;
  /** Empty for the core group. */
  readonly group: string;
  /** The plural, such as `packagerevisions`. */
  readonly resource: string;
  readonly subResource?: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * Decides what users may do who act through a host of pull requests, by the same rules as for their requests to the API. Contract: only
 * `true` is a permission. Both methods reject with Unavailable or Internal where it is not decided, for instance because the cluster does
 * not respond: the caller tries again later, and nothing is done until then.
 */
export interface Rights {
  may(subject: Subject, access: Access): Promise<boolean>;
  /** Whether a user may approve, reject or publish a revision: `update` of the sub-resource `approval`. */
  mayApprove(subject: Subject, revision: { readonly namespace: string; readonly name: string }): Promise<boolean>;
}
