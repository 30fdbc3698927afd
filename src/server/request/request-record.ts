/** What is told of a request when it was answered, to the metrics and to the audit log. Never what was written. */
export interface RequestRecord {
  /** When it came, RFC 3339 with milliseconds. */
  readonly time: string;
  readonly requestId: string;
  /** Whom it was judged as; undefined if nobody was proven. */
  readonly user: string | undefined;
  readonly groups: readonly string[];
  /** Who sent it, if it was done in another's name. */
  readonly impersonator: string | undefined;
  readonly verb: string;
  /** False for paths such as `/metrics`, and for paths that could not be read. */
  readonly isResource: boolean;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subResource: string;
  readonly namespace: string;
  readonly name: string;
  /** `stored` for kinds that are kept, `review` for questions in the form of objects, `unknown` for what is not served. */
  readonly served: 'stored' | 'review' | 'unknown';
  readonly dryRun: boolean;
  /** The HTTP status of the answer. */
  readonly code: number;
  /** Why it failed, as a reason of Kubernetes; empty if it did not. */
  readonly reason: string;
  /** Until the answer was there; of a watch, until it began. */
  readonly milliseconds: number;
}
