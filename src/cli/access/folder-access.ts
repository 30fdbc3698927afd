import type { Session } from '../../app/session/session.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import type { Access } from './access.ts';
import { FolderRepositories } from './folder-repositories.ts';

/** A data folder that no server serves: this process opens a session and uses its registry. */
export class FolderAccess implements Access {
  readonly where: string;
  readonly server = undefined;
  readonly namespace: string;
  readonly clock: Clock;
  readonly client: Client;
  readonly repositories: FolderRepositories;
  readonly isSluice = true;
  readonly keepsVersions = false;
  readonly unreadRepositories: () => number;
  readonly #session: Session;

  constructor(session: Session, namespace: string, unreadRepositories: () => number) {
    this.where = `the data folder ${session.folder.path}`;
    this.namespace = namespace;
    this.clock = session.clock;
    this.client = session.client;
    this.repositories = new FolderRepositories(session, namespace);
    this.unreadRepositories = unreadRepositories;
    this.#session = session;
  }

  close(): Promise<void> {
    return this.#session.close();
  }
}
