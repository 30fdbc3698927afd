import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import type { Actor } from '../../resource/object/request-context.ts';

/** The API that a command calls: that of a server, or of a data folder in this process. The actor is part of it. */
export interface Access {
  /** For messages, such as `the data folder /home/anna/.sluice` or `https://… (context …)`. */
  readonly where: string;
  /** The server, if it is one. The API of a data folder ends with the command, and its versions of objects with it. */
  readonly server: string | undefined;
  /** The namespace that is meant. */
  readonly namespace: string;
  /** The namespace that is meant where the command line names none. */
  readonly defaultNamespace: string;
  readonly clock: Clock;
  readonly client: Client;
  /**
   * How many repositories a list left out since they could not be read; each was reported. A server that serves an earlier state of a
   * repository has left nothing out, which is reported too.
   */
  readonly unreadRepositories: (namespace: string | undefined) => Promise<number>;
  /**
   * False for other servers of package revisions: they have no explanations, and require their clients to respect gates.
   */
  readonly isSluice: boolean;
  /** False for a cluster, which has objects of others too, also where Sluice serves its packages. */
  readonly isOwnServer: boolean;
  /** The namespace whose freezes are in force in all. */
  readonly systemNamespace: string;
  /** The user that requests are made as, with the groups that the server knows. */
  caller(): Promise<Actor>;
  close(): Promise<void>;
}
