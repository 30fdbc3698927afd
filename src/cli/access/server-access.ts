import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../foundation/time/clock.ts';
import type { Connection } from '../../kubernetes/connection/connection.ts';
import { HttpClient } from '../../kubernetes/http-client.ts';
import type { Client } from '../../resource/client/client.ts';
import type { Actor } from '../../resource/object/request-context.ts';
import type { Access } from './access.ts';

export interface ServerAccessOptions {
  readonly connection: Connection;
  /** The requested namespace; by default that of the kubeconfig. */
  readonly namespace: string | undefined;
  /** The user to impersonate; the user of the kubeconfig if absent. */
  readonly actor: Actor | undefined;
  /** The data folder whose server it is, if it is one of this machine. */
  readonly folder?: string;
}

/** A server: our own, or any that serves package revisions as Porch does. */
export class ServerAccess implements Access {
  readonly where: string;
  readonly server: string;
  readonly namespace: string;
  readonly clock: Clock = systemClock;
  readonly client: Client;
  readonly isSluice: boolean;
  readonly unreadRepositories = () => 0;
  readonly #connection: Connection;

  private constructor({ connection, namespace, actor, folder }: ServerAccessOptions, isSluice: boolean) {
    const { access } = connection;
    this.server = access.server;
    const of = folder === undefined ? access.source : `"sluice up" on ${folder}`;
    this.where = `${access.server} (${of})`;
    this.namespace = namespace ?? access.namespace;
    this.client = new HttpClient({ connection, face: 'cli', impersonate: actor });
    this.isSluice = isSluice;
    this.#connection = connection;
  }

  /**
   * Requests the user name from the server; fails like any call if the server cannot be reached or does not
   * authenticate the caller.
   */
  static async open(options: ServerAccessOptions): Promise<ServerAccess> {
    const { connection } = options;
    const asked = new HttpClient({ connection, face: 'cli' });
    const { text } = await asked.raw('GET', '/version');
    return new ServerAccess(options, gitVersion(text, connection).includes('sluice'));
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}

function gitVersion(text: string, { access }: Connection): string {
  try {
    const { gitVersion: version } = JSON.parse(text) as { gitVersion?: unknown };
    return String(version);
  } catch (error) {
    throw new SluiceError(
      'Unavailable',
      `${access.server} does not answer as a Kubernetes API server (${access.source}): ${messageOf(error)}`,
      { cause: error },
    );
  }
}
