import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  Agent as PlainAgent,
  request as plainRequest,
} from 'node:http';
import { Agent, request } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { findClusterAccess } from '../../../src/kubernetes/access/kubeconfig.ts';
import { WatchStream } from './watch-stream.ts';

/** An object, a list or a Status, as far as tests look into it. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

export interface KubeList extends KubeObject {
  readonly metadata: KubeObject['metadata'] & { readonly continue?: string; readonly remainingItemCount?: number };
  readonly items: readonly KubeObject[];
}

/** A whole answer. `body` is the text read as JSON, if it is JSON. */
export interface Answer<Body = KubeObject> {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Body;
}

export interface SendOptions {
  /** A value is sent as JSON, text and bytes as they are. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

export const JSON_PATCH = 'application/json-patch+json';
export const MERGE_PATCH = 'application/merge-patch+json';
export const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';
export const APPLY_PATCH = 'application/apply-patch+yaml';

/** The user of the requests: that of the kubeconfig by default. */
export interface Identity {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
}

interface Connection {
  readonly url: URL;
  readonly ca: string | undefined;
  readonly insecure: boolean;
  readonly agent: Agent | PlainAgent;
  readonly headers: Readonly<Record<string, string>>;
}

/** Asks a Kubernetes API over plain HTTPS, with nothing between the test and what is sent. */
export class KubeApi {
  readonly #connection: Connection;

  private constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** The server and the user of a kubeconfig's current context. */
  static async of(kubeconfig: string): Promise<KubeApi> {
    const { server, tls, credentials } = await findClusterAccess({ kubeconfig });
    const { headers, certificate = {} } = await credentials.proof();
    const { ca, cert, key, insecure } = { ...tls, ...certificate };
    const url = new URL(server);
    const agent = agentFor(url, { ca, insecure, cert, key });
    return new KubeApi({ url, ca, insecure, agent, headers });
  }

  /** The same server for another user, over separate connections. */
  as({ token, cert, key }: Identity): KubeApi {
    const { url, ca, insecure } = this.#connection;
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return new KubeApi({ ...this.#connection, agent: agentFor(url, { ca, insecure, cert, key }), headers });
  }

  get url(): URL {
    return this.#connection.url;
  }

  get ca(): string | undefined {
    return this.#connection.ca;
  }

  /** The credentials of the requests. */
  get headers(): Readonly<Record<string, string>> {
    return this.#connection.headers;
  }

  get<Body = KubeObject>(path: string, headers: SendOptions['headers'] = {}): Promise<Answer<Body>> {
    return this.send<Body>('GET', path, { headers });
  }

  list(path: string): Promise<Answer<KubeList>> {
    return this.send<KubeList>('GET', path);
  }

  post<Body = KubeObject>(path: string, body: unknown): Promise<Answer<Body>> {
    return this.send<Body>('POST', path, { body });
  }

  put(path: string, body: unknown): Promise<Answer> {
    return this.send('PUT', path, { body });
  }

  patch(path: string, body: unknown, type: string = MERGE_PATCH): Promise<Answer> {
    return this.send('PATCH', path, { body, headers: { 'content-type': type } });
  }

  /** Server-side apply. */
  apply(path: string, fieldManager: string, body: unknown, more = ''): Promise<Answer> {
    return this.patch(`${path}?fieldManager=${fieldManager}${more}`, body, APPLY_PATCH);
  }

  delete(path: string, options?: object): Promise<Answer> {
    return this.send('DELETE', path, options === undefined ? {} : { body: options });
  }

  async send<Body = KubeObject>(method: string, path: string, options: SendOptions = {}): Promise<Answer<Body>> {
    const response = await this.open(method, path, options);
    const raw = await buffer(response);
    const bytes = response.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw;
    const text = bytes.toString();
    const isJson = (response.headers['content-type'] ?? '').startsWith('application/json');
    const body = (isJson && text !== '' ? JSON.parse(text) : undefined) as Body;
    return { status: response.statusCode ?? 0, headers: response.headers, text, body };
  }

  /** Opens a watch; `path` with its parameters but without `watch`. Throws if the server does not begin one. */
  async watch(path: string): Promise<WatchStream> {
    const response = await this.open('GET', `${path}${path.includes('?') ? '&' : '?'}watch=true`);
    if (response.statusCode !== 200) throw new Error(`watch of ${path}: ${(await buffer(response)).toString()}`);
    return new WatchStream(response);
  }

  /** Sends a request and resolves with the answer's head. */
  open(method: string, path: string, { body, headers = {} }: SendOptions = {}): Promise<IncomingMessage> {
    const { url, agent, headers: own } = this.#connection;
    const content =
      body === undefined || typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
    const sent = {
      accept: 'application/json',
      ...(content === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) }),
      ...own,
      ...(headers as Record<string, string | string[]>),
    };
    const target = { host: url.hostname, port: url.port, path: `${url.pathname.replace(/\/$/, '')}${path}` };
    return new Promise((resolve, reject) => {
      const send = url.protocol === 'https:' ? request : plainRequest;
      const outgoing = send({ ...target, agent, method, headers: sent }, resolve);
      outgoing.on('error', reject);
      outgoing.end(content);
    });
  }

  /** Ends all connections. */
  close(): void {
    this.#connection.agent.destroy();
  }
}

function agentFor(
  url: URL,
  tls: {
    readonly ca: string | undefined;
    readonly insecure: boolean;
    readonly cert?: string | undefined;
    readonly key?: string | undefined;
  },
): Agent | PlainAgent {
  if (url.protocol !== 'https:') return new PlainAgent({ keepAlive: true });
  const { ca, cert, key, insecure } = tls;
  return new Agent({
    keepAlive: true,
    rejectUnauthorized: !insecure,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  });
}
