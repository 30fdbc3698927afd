/** An authenticated user. */
export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  /** Further attributes from the authenticator; shown by `kubectl auth whoami`. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** The group of all authenticated users. */
export const AUTHENTICATED_GROUP = 'system:authenticated';

/** What a kube-apiserver names a request without credentials, and the group of all of these. */
export const ANONYMOUS_USER = 'system:anonymous';
export const UNAUTHENTICATED_GROUP = 'system:unauthenticated';

/** Members may do everything, regardless of the RBAC objects. */
export const MASTERS_GROUP = 'system:masters';
