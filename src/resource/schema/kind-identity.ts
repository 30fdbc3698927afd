import type { GroupVersionKind } from '../object/object.ts';

/** Under which names clients find a kind: all that a URL, discovery and `kubectl get` need. */
export interface KindIdentity extends GroupVersionKind {
  readonly apiVersion: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  /** The scope: namespaced or of the whole cluster. */
  readonly namespaced: boolean;
}
