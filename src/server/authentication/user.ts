/** Who a request comes from, once that is proven. */
export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  /** What the authenticator knows besides; shown by `kubectl auth whoami`. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Everyone whose name is proven is in this group. */
export const AUTHENTICATED_GROUP = 'system:authenticated';

/** Members may do everything, whatever the RBAC objects say. */
export const MASTERS_GROUP = 'system:masters';
