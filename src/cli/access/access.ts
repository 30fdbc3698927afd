import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import type { Repositories } from './repositories.ts';

/** What commands work through: packages and objects of a data folder or of a server. Who asks is part of it. */
export interface Access {
  /** For messages, such as `the data folder /home/anna/.sluice` or `https://… (context …)`. */
  readonly where: string;
  /** The server, if it is one, for messages about what it refused. */
  readonly server: string | undefined;
  /** The namespace that is meant. */
  readonly namespace: string;
  readonly clock: Clock;
  readonly client: Client;
  readonly repositories: Repositories;
  /** How many repositories a list left out since they could not be opened; each was reported. */
  readonly unreadRepositories: () => number;
  /** False for other servers of package revisions: they explain nothing, and leave it to their clients to respect gates. */
  readonly isSluice: boolean;
  /** True if a resourceVersion means the same to the next command. */
  readonly keepsVersions: boolean;
  close(): Promise<void>;
}
