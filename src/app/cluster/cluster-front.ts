import type { IncomingMessage, ServerResponse } from 'node:http';
import { messageOf } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { unlessRepeated } from '../../foundation/time/unless-repeated.ts';
import { type DelegatedAccess, delegateAccess } from '../../kubernetes/delegated-access.ts';
import type { HttpClient } from '../../kubernetes/http-client.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { ApiServer } from '../../server/api-server.ts';
import {
  type KeptServingCertificates,
  keepServingCertificates,
} from '../../server/certificates/keep-serving-certificates.ts';
import type { ServingCertificates } from '../../server/certificates/serving-certificates.ts';
import type { HealthChecks } from '../../server/health/health-checks.ts';
import { type Listener, listen } from '../../server/listener.ts';
import type { ListenAddress } from '../service/listen-address.ts';

/** The Secret with the certificates, which all replicas share. */
const CERTIFICATES_NAME = 'sluice-serving-cert';
/** Requests that a replica answers in each state. */
const OPEN_PATHS = /^\/(livez|readyz|healthz)([/?]|$)/;

export interface ClusterFrontOptions {
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly address: ListenAddress;
  readonly namespace: string;
  /** Name of the Service under which the cluster reaches this server. */
  readonly service: string;
  readonly health: HealthChecks;
  readonly warn: (subject: string, message: string) => void;
}

/**
 * The HTTPS listener of a replica, with the certificates and the users of the cluster. It responds to health checks from its start, and
 * to all other requests with 503 until a server is set.
 */
export class ClusterFront {
  readonly access: DelegatedAccess;
  readonly #options: ClusterFrontOptions;
  readonly #certificates: KeptServingCertificates;
  readonly #listener: Listener;
  readonly #healthServer: ApiServer;
  readonly #listeners = new Set<() => void>();
  #server: ApiServer | undefined;
  #stopping: Promise<void> | undefined;

  /** Rejects if the certificates cannot be read or created, or the port cannot be opened. */
  static async open(options: ClusterFrontOptions): Promise<ClusterFront> {
    const { client, clock, address, namespace, service, warn } = options;
    // Callers without valid credentials cause failures too, as often as they like.
    const isNews = unlessRepeated(clock);
    const warnOfAccess = (error: unknown) => {
      const message = messageOf(error);
      if (isNews(message)) warn('authentication', message);
    };
    // Set at once, before anything can change.
    let front: ClusterFront | undefined;
    const certificates = await keepServingCertificates({
      ...{ client, clock, names: serviceNames(service, namespace) },
      secret: { namespace, name: CERTIFICATES_NAME },
      onChange: () => front?.noteCertificates(),
      onError: (error) => warn('certificates', messageOf(error)),
    });
    const access = delegateAccess({
      ...{ client, clock },
      onAuthorities: () => front?.noteCertificates(),
      onError: warnOfAccess,
    });
    try {
      const { key, certificate: cert } = certificates.current.server;
      const listener = await listen({
        ...{ host: address.host, port: address.port, tls: { key, cert, clientCa: access.clientCa } },
        handle: (request, response) => front?.handle(request, response),
        refuseOutdated: (request, response) => refuseOutdated(request, response, front),
        onError: (error) => warn('connections', messageOf(error)),
        onStop: () => front?.endWatches(),
      });
      front = new ClusterFront(options, certificates, access, listener);
      front.noteCertificates();
      return front;
    } catch (error) {
      await certificates.stop();
      await access.stop();
      throw error;
    }
  }

  private constructor(
    options: ClusterFrontOptions,
    certificates: KeptServingCertificates,
    access: DelegatedAccess,
    listener: Listener,
  ) {
    const { clock, health, warn } = options;
    this.#options = options;
    this.#certificates = certificates;
    this.access = access;
    this.#listener = listener;
    this.#healthServer = new ApiServer({
      registry: new Registry(),
      clock,
      authenticator: access.authenticator,
      authorizer: access.authorizer,
      publicPaths: [health.publicPaths],
      paths: [health.detailPaths],
      onError: (error, where) => warn(where, messageOf(error)),
    });
  }

  /** `https://0.0.0.0:8443` */
  get url(): string {
    return this.#listener.url;
  }

  get certificates(): ServingCertificates {
    return this.#certificates.current;
  }

  /** Calls the listener whenever the certificates may have changed. */
  onCertificates(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** From now on this server gets all requests; it serves the health checks as well. */
  serve(server: ApiServer): void {
    this.#server = server;
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const server = this.#server ?? (OPEN_PATHS.test(request.url ?? '') ? this.#healthServer : undefined);
    if (server !== undefined) void server.handle(request, response);
    else refuse(response);
  }

  endWatches(): void {
    this.#server?.endWatches();
  }

  noteCertificates(): void {
    const { key, certificate: cert } = this.#certificates.current.server;
    this.#listener.setTls({ key, cert, clientCa: this.access.clientCa });
    for (const listener of this.#listeners) listener();
  }

  /** Finishes the requests in progress. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    await this.#listener.stop();
    const stopped = await Promise.allSettled([this.#certificates.stop(), this.access.stop()]);
    for (const result of stopped)
      if (result.status === 'rejected') this.#options.warn('connections', messageOf(result.reason));
  }
}

/** The names that a Service has in its cluster. */
function serviceNames(service: string, namespace: string): string[] {
  const name = `${service}.${namespace}`;
  return [service, name, `${name}.svc`, `${name}.svc.cluster.local`];
}

/** With 401 the client would discard credentials that are valid. */
function refuseOutdated(request: IncomingMessage, response: ServerResponse, front: ClusterFront | undefined): void {
  if (OPEN_PATHS.test(request.url ?? '')) front?.handle(request, response);
  else
    refuse(
      response,
      'the certificate authorities of the cluster have changed since this connection began; connect again',
    );
}

const NOT_LEADING = 'this replica of Sluice does not lead now: another one serves the API, or will soon; try again';

function refuse(response: ServerResponse, message = NOT_LEADING): void {
  const status = {
    ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason: 'ServiceUnavailable', code: 503 },
    message,
    details: { retryAfterSeconds: 1 },
  };
  response.writeHead(503, { 'content-type': 'application/json', 'retry-after': '1' });
  response.end(`${JSON.stringify(status)}\n`);
}
