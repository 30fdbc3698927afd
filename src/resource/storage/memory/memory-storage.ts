import type { Clock } from '../../../foundation/time/clock.ts';
import type { KubernetesObject } from '../../object/object.ts';
import type { Kind } from '../../schema/kind.ts';
import type { EventLog } from '../../watch/event-log.ts';
import { memoryCommitter } from './commit.ts';
import type { NamespaceQuota } from './namespace-quota.ts';
import { ObjectStorage } from './object-storage.ts';

export interface MemoryStorageOptions {
  readonly clock: Clock;
  /** Shared by all kinds that rise in one version. */
  readonly log: EventLog;
  /** Makes uids and the random part of generated names. Default: random UUIDs. */
  readonly uuid?: () => string;
  readonly quota?: NamespaceQuota;
}

/** Objects of one kind in memory, for data that is derived again at every start, and for tests. */
export class MemoryStorage<T extends KubernetesObject = KubernetesObject> extends ObjectStorage<T> {
  constructor(kind: Kind<T>, options: MemoryStorageOptions) {
    super(kind, { ...options, committer: memoryCommitter(options.log) });
  }
}
