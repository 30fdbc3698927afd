import { z } from 'zod';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../foundation/time/clock.ts';
import type { Connection } from '../../kubernetes/connection/connection.ts';
import { HttpClient } from '../../kubernetes/http-client.ts';
import type { Client } from '../../resource/client/client.ts';
import { SYSTEM_NAMESPACE } from '../../resource/kinds/core/namespace.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { SYSTEM_NAMESPACE_FIELD } from '../../resource/kinds/sluice/freeze.ts';
import { findCondition } from '../../resource/object/condition.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Actor } from '../../resource/object/request-context.ts';
import type { Access } from './access.ts';

export interface ServerAccessOptions {
  readonly connection: Connection;
  /** The requested namespace; by default that of the kubeconfig. */
  readonly namespace: string | undefined;
  /** The user to impersonate; the user of the kubeconfig if absent. */
  readonly actor: Actor | undefined;
  /** Called with why a list may be incomplete; `namespace` is that of the object. */
  readonly onWarning: (text: string, namespace?: string) => void;
  /** The data folder whose server it is, if it is one of this machine. */
  readonly folder?: string;
}

/** The part of a SelfSubjectReview that is read. */
const selfSubjectReview = z.object({
  status: z.object({ userInfo: z.object({ username: z.string().min(1), groups: z.array(z.string()).default([]) }) }),
});

/** A server: our own, or any that serves package revisions as Porch does. */
export class ServerAccess implements Access {
  readonly where: string;
  readonly server: string;
  readonly namespace: string;
  readonly defaultNamespace: string;
  readonly clock: Clock = systemClock;
  readonly client: Client;
  readonly isSluice: boolean;
  readonly isOwnServer: boolean;
  readonly systemNamespace: string;
  readonly #connection: Connection;
  readonly #http: HttpClient;
  readonly #onWarning: ServerAccessOptions['onWarning'];

  private constructor(
    { connection, namespace, actor, folder, onWarning }: ServerAccessOptions,
    served: Pick<Access, 'isSluice' | 'isOwnServer' | 'systemNamespace'>,
  ) {
    const { access } = connection;
    this.server = access.server;
    const of = folder === undefined ? access.source : `"sluice up" on ${folder}`;
    this.where = `${access.server} (${of})`;
    this.namespace = namespace ?? access.namespace;
    this.defaultNamespace = access.namespace;
    this.#http = new HttpClient({ connection, face: 'cli', impersonate: actor });
    this.client = this.#http;
    this.isSluice = served.isSluice;
    this.isOwnServer = served.isOwnServer;
    this.systemNamespace = served.systemNamespace;
    this.#connection = connection;
    this.#onWarning = onWarning;
  }

  /**
   * Requests the user name from the server; fails like any call if the server cannot be reached or does not
   * authenticate the caller.
   */
  static async open(options: ServerAccessOptions): Promise<ServerAccess> {
    const { connection } = options;
    const client = new HttpClient({ connection, face: 'cli' });
    const [{ text }, packages] = await Promise.all([client.raw('GET', '/version'), servedPackages(client)]);
    const isOwnServer = gitVersion(text, connection).includes('sluice');
    const { explains, systemNamespace } = packages;
    return new ServerAccess(options, { isOwnServer, isSluice: isOwnServer || explains, systemNamespace });
  }

  async caller(): Promise<Actor> {
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
    const { text } = await this.#http.raw(
      'POST',
      '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      JSON.stringify(review),
    );
    const found = selfSubjectReview.safeParse(JSON.parse(text));
    if (!found.success) throw new SluiceError('Unsupported', `${this.server} does not report which user you are`);
    const { username, groups } = found.data.status.userInfo;
    return { name: username, groups };
  }

  async unreadRepositories(namespace: string | undefined): Promise<number> {
    let unread = 0;
    for (const { metadata, status } of await this.#repositories(namespace)) {
      const ready = findCondition(status?.conditions, 'Ready');
      if (ready?.status !== 'False') continue;
      const synced = status?.lastFullSyncTime;
      if (synced === undefined) unread += 1;
      const state = synced === undefined ? '' : `; its packages are shown as of ${synced}`;
      this.#onWarning(`repository ${metadata.name}: ${ready.message}${state}`, metadata.namespace);
    }
    return unread;
  }

  async #repositories(namespace: string | undefined): Promise<readonly Stored<Repository>[]> {
    try {
      return (await this.client.list(repositoryKind, namespace === undefined ? {} : { namespace })).items;
    } catch (error) {
      // A user who may read packages need not have the right to read repositories.
      if (isSluiceError(error, 'Refused') || isSluiceError(error, 'Unsupported')) return [];
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}

interface ServedPackages {
  /** True if Sluice serves the package kinds of a cluster, whose version is that of its kube-apiserver. */
  readonly explains: boolean;
  readonly systemNamespace: string;
}

/** What the list of resources of the package kinds reports. */
async function servedPackages(client: HttpClient): Promise<ServedPackages> {
  const { group, version } = packageRevisionKind;
  try {
    const { text } = await client.raw('GET', `/apis/${group}/${version}`);
    const { resources, [SYSTEM_NAMESPACE_FIELD]: systemNamespace } = discoverySchema.parse(JSON.parse(text));
    return { explains: resources.some(({ name }) => name === 'packagerevisions/explain'), systemNamespace };
  } catch (error) {
    // Without package kinds, or while no server of them is available, commands for other kinds work, and those for packages report it.
    if (isSluiceError(error) || error instanceof z.ZodError || error instanceof SyntaxError)
      return { explains: false, systemNamespace: SYSTEM_NAMESPACE };
    throw error;
  }
}

const discoverySchema = z.object({
  resources: z.array(z.object({ name: z.string() })),
  // Earlier versions do not report it.
  [SYSTEM_NAMESPACE_FIELD]: z.string().min(1).max(63).default(SYSTEM_NAMESPACE),
});

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
