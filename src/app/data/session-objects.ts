import type { Client } from '../../resource/client/client.ts';
import type { Actor } from '../../resource/object/request-context.ts';
import type { ObjectDatabase } from '../../resource/storage/sqlite/object-database.ts';
import type { Storage } from '../../resource/storage/storage.ts';
import type { EventLog } from '../../resource/watch/event-log.ts';

/** The objects of a session that are not packages: those of a data folder, or of a cluster. */
export interface SessionObjects {
  /** The log of the package kinds, and of all others that are kept here. */
  readonly log: EventLog;
  /** Keeps what this process notes about packages, and counts the quota; absent in a cluster. */
  readonly database?: ObjectDatabase;
  storages(): Storage[];
  /** A client of these objects alone, for callers without a session. */
  client(actor: Actor): Client;
  /** Makes the last writes durable, and ends the access to the objects. */
  close(): Promise<void>;
}
