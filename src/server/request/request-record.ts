/**
 * The data about a request for metrics and the audit log, once its response is known. Never contains the written
 * object.
 */
export interface RequestRecord {
  /** Time at which the request arrived, RFC 3339 with milliseconds. */
  readonly time: string;
  readonly requestId: string;
  /** The effective user of the request; undefined if it was not authenticated. */
  readonly user: string | undefined;
  readonly groups: readonly string[];
  /** The sender, if that user impersonated another one. */
  readonly impersonator: string | undefined;
  readonly verb: string;
  /** False for paths such as `/metrics`, and for invalid ones. */
  readonly isResource: boolean;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subResource: string;
  readonly namespace: string;
  readonly name: string;
  /** `stored` for kinds with objects, `review` for reviews, which are not stored, `unknown` for what is not served. */
  readonly served: 'stored' | 'review' | 'unknown';
  readonly dryRun: boolean;
  /** The HTTP status of the response. */
  readonly code: number;
  /** The reason of the failure as Kubernetes names it; empty if there is none. */
  readonly reason: string;
  /** Until the response was ready; for a watch, until it began. */
  readonly milliseconds: number;
}
