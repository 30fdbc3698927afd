import type { KubernetesObject, Stored } from '../object/object.ts';
import type { IndexKey } from './index-key.ts';

/** A change in the log: the object before and after; one of them may be missing. */
export interface LoggedChange<T extends KubernetesObject = KubernetesObject> {
  readonly before: Stored<T> | undefined;
  readonly after: Stored<T> | undefined;
  /** The index keys of both states, for watchers with a narrow selection. Computed only on request. */
  indexKeys?(): Iterable<IndexKey>;
}

export interface LogEntry<T extends KubernetesObject = KubernetesObject> {
  readonly version: bigint;
  readonly change: LoggedChange<T>;
  /** About how many bytes it takes, where that is known. */
  readonly size?: number;
}
