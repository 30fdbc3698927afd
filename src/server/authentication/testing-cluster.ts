import { connect } from 'node:http2';
import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { systemClock } from '../../foundation/time/clock.ts';
import { type CertificateRequest, issueCertificate, type KeyPair } from '../certificates/issue-certificate.ts';
import { type Listener, listen } from '../listener.ts';
import { type Authenticator, firstOf } from './authenticator.ts';
import { CertificateAuthenticator } from './certificate-authenticator.ts';
import { type ClusterTrust, parseClusterTrust } from './cluster-trust.ts';
import { RequestHeaderAuthenticator } from './request-header-authenticator.ts';
import type { User } from './user.ts';

const DAY_MS = 86_400_000;

/** Issues a certificate that is valid today, signed by itself without an issuer. */
export function issue(
  request: Omit<CertificateRequest, 'notBefore' | 'notAfter'> & Partial<CertificateRequest>,
  issuer?: KeyPair,
): Promise<KeyPair> {
  return issueCertificate({ notBefore: Date.now() - DAY_MS, notAfter: Date.now() + DAY_MS, ...request }, issuer);
}

/** The data of the ConfigMap as a kube-apiserver with default flags writes it. */
export function trustData(
  { proxy, client }: { readonly proxy?: string; readonly client?: string },
  changes: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return {
    ...(client === undefined ? {} : { 'client-ca-file': client }),
    ...(proxy === undefined ? {} : { 'requestheader-client-ca-file': proxy }),
    'requestheader-allowed-names': '["front-proxy-client"]',
    'requestheader-username-headers': '["X-Remote-User"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    ...changes,
  };
}

type SentHeaders = Readonly<Record<string, string | readonly string[]>>;

/** A response of `ExtensionServer`: the user, or `null` if the request proves none. */
type WhoAmI = User | null;

/** A connection that stays open between requests. */
interface OpenConnection {
  whoAmI(headers?: SentHeaders): Promise<WhoAmI>;
}

/** A TLS listener that responds with the user of each request, and whose trust can change. */
export class ExtensionServer implements AsyncDisposable {
  readonly errors: unknown[] = [];
  trust: ClusterTrust;
  readonly #server: KeyPair;
  readonly #closing: (() => void)[] = [];
  #listener: Listener | undefined;

  private constructor(server: KeyPair, data: Record<string, string>) {
    this.#server = server;
    this.trust = parseClusterTrust(data);
  }

  static async start(data: Record<string, string>): Promise<ExtensionServer> {
    const ca = await issue({ commonName: 'serving', usage: 'authority' });
    const pair = await issue({ commonName: 'server', usage: 'server', names: ['127.0.0.1'] }, ca);
    const server = new ExtensionServer(pair, data);
    const authenticator = server.#authenticator();
    server.#listener = await listen({
      host: '127.0.0.1',
      port: 0,
      tls: server.#tls(),
      onError: (error) => server.errors.push(error),
      handle: async (incoming, response) => {
        response.end(JSON.stringify((await authenticator.authenticate(incoming)) ?? null));
      },
    });
    return server;
  }

  #authenticator(): Authenticator {
    const proxies = new RequestHeaderAuthenticator(systemClock, () => this.trust.requestHeader);
    const users = new CertificateAuthenticator(systemClock, () => this.trust.clientAuthorities);
    return firstOf([proxies, users], (error) => this.errors.push(error));
  }

  #tls() {
    const { requestHeader, clientAuthorities } = this.trust;
    const clientCa = (requestHeader?.authorities.pem ?? '') + clientAuthorities.pem;
    return { key: this.#server.key, cert: this.#server.certificate, clientCa };
  }

  /** Applies what the ConfigMap contains now. */
  follow(data: Record<string, string>): void {
    this.trust = parseClusterTrust(data);
    this.#listener?.setTls(this.#tls());
  }

  /** Opens a connection of HTTP/1. */
  http1(pair?: KeyPair): OpenConnection {
    const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false, ...credentialsOf(pair) });
    this.#closing.push(() => agent.destroy());
    return {
      whoAmI: (headers = {}) =>
        new Promise((resolve, reject) => {
          const sent = headers as Record<string, string | string[]>;
          request(`${this.#url}/`, { agent, headers: sent }, (response) => {
            text(response).then((body) => resolve(JSON.parse(body) as WhoAmI), reject);
          })
            .on('error', reject)
            .end();
        }),
    };
  }

  /** Opens a connection of HTTP/2. */
  http2(pair?: KeyPair): OpenConnection {
    const session = connect(this.#url, { rejectUnauthorized: false, ...credentialsOf(pair) });
    session.on('error', () => undefined);
    this.#closing.push(() => session.destroy());
    return {
      whoAmI: async (headers = {}) => {
        const stream = session.request({ ':path': '/', ...(headers as Record<string, string | string[]>) });
        return JSON.parse(await text(stream)) as WhoAmI;
      },
    };
  }

  get #url(): string {
    return this.#listener?.url ?? '';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closing) close();
    await this.#listener?.stop(1000);
  }
}

function credentialsOf(pair: KeyPair | undefined) {
  return pair === undefined ? {} : { cert: pair.certificate, key: pair.key };
}
