import type { KubernetesObject } from '../../object/object.ts';
import type { EventLog } from '../../watch/event-log.ts';
import type { LoggedChange } from '../../watch/log-entry.ts';

/** One write while it is being made. */
export interface Transaction {
  /**
   * Changes one object: `make` gets the version of the change and returns what the object was and is. `undo` brings the memory back to
   * where it was, if the change cannot be made durable.
   */
  change<T extends KubernetesObject>(
    topic: string,
    key: string,
    make: (resourceVersion: string) => LoggedChange<T>,
    undo: () => void,
  ): void;
}

/** Makes writes durable. */
export interface Committer {
  /**
   * Runs `work`, maybe together with other writes in one transaction, one after the other. Resolves with its result once all its
   * changes are durable and in the event log; rejects with what it throws, and then it must not have changed anything.
   */
  run<Result>(work: (transaction: Transaction) => Result): Promise<Result>;
}

/** For objects that live as long as the process: every write is done at once. */
export function memoryCommitter(log: EventLog): Committer {
  return {
    run: async (work) => work({ change: (topic, _key, make) => log.append(topic, make) }),
  };
}
