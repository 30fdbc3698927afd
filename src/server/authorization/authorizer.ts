import type { User } from '../authentication/user.ts';

/** What somebody wants to do, as Kubernetes describes a request to its authorizers. */
export interface RequestAttributes {
  readonly user: User;
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or the HTTP method in lower case. */
  readonly verb: string;
  /** False for paths such as `/metrics`, which only `path` describes. */
  readonly isResource: boolean;
  readonly path: string;
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** The plural, such as `packagerevisions`. */
  readonly resource: string;
  readonly subResource: string;
  /** Empty for cluster-scoped objects and for requests over all namespaces. */
  readonly namespace: string;
  /** Empty if the request names no object. */
  readonly name: string;
}

export interface Decision {
  readonly allowed: boolean;
  /** Why; for a refusal in words that end up in the answer. */
  readonly reason: string;
}

/** Decides whether a request may go on. */
export interface Authorizer {
  authorize(attributes: RequestAttributes): Decision;
}
