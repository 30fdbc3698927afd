import type { User } from '../authentication/user.ts';

/** The attributes of a request, as Kubernetes passes them to its authorizers. */
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
  /** What a list, a watch or a deletion of many is limited to; absent for what is not limited. */
  readonly selectors?: RequestSelectors;
}

/** The selectors of a request, in the form of `authorization.k8s.io/v1`. */
export interface RequestSelectors {
  readonly fieldSelector?: Requirements;
  readonly labelSelector?: Requirements;
}

interface Requirements {
  readonly requirements: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

export interface AuthorizationDecision {
  readonly allowed: boolean;
  /** The reason; that of a refusal is part of the response. */
  readonly reason: string;
}

/**
 * Decides whether a request is allowed.
 *
 * Contract: `authorize` rejects where it cannot decide, for instance because the cluster that it queries does not respond; with a
 * SluiceError Unavailable, Timeout or TooManyRequests where the caller may try again. Callers of an authorizer use `isAllowed` or
 * `requireAllowed`, which turn a rejection into a failure of the request: only a positive decision allows a request.
 *
 * `signal` aborts when the request ends: its time is up, or its client disconnected. An authorizer that queries another system must
 * end its query then; the request ends in any case.
 *
 * A decision applies to its request, as in Kubernetes: a right that is revoked later ends neither a write in progress nor an open
 * watch.
 */
export interface Authorizer {
  authorize(attributes: RequestAttributes, signal?: AbortSignal): Promise<AuthorizationDecision>;
}
