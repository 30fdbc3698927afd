import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { isSluiceError, SluiceError } from '../../../foundation/sluice-error.ts';
import { trimEndOf } from '../../../foundation/text/trim-characters.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import type { BasicCredentials, GitCredentials } from '../../git-repository.ts';
import type { GitNetwork } from '../../network/git-network.ts';
import { readCredentials } from '../../network/remote-credentials.ts';
import type { Call } from '../protocol/call.ts';
import type { Connection, Exchange } from '../protocol/connection.ts';
import { ProtocolError } from '../protocol/protocol-error.ts';
import { failureOf, type RequestFailure } from '../protocol/request-failure.ts';
import { ConnectionPool } from './connection-pool.ts';
import { connectionError, statusError } from './http-error.ts';

const MAX_RETRY_AFTER_SECONDS = 86_400;

/** The server answers, but not in Git's smart HTTP protocol. */
export class NotSmartError extends ProtocolError {}

const AGENT = 'sluice';
/** How often, and for how long at a time, a call waits for a server that returns Retry-After. */
const MAX_WAITS = 2;
const MAX_WAIT_MS = 10_000;

/**
 * One repository behind Git's smart HTTP protocol. Redirects are never followed: they would carry credentials elsewhere. After 401 the
 * credentials are read once more, and the request is sent again if they have changed; after 429 or 503 with a Retry-After that is
 * short enough it is sent again then.
 *
 * Errors: SluiceError with RequestFailure as details, and ProtocolError as thrown by `read`. No message contains a secret or the text
 * of a response.
 */
export class SmartHttp implements Connection {
  readonly url: string;
  readonly compresses = true;
  readonly advertisesFirst = false;
  readonly #clock: Clock;
  readonly #pool: ConnectionPool;
  readonly #origin: string;
  readonly #path: string;

  /** `url` has been checked; see remote-url.ts. */
  constructor(url: string, clock: Clock, network: GitNetwork) {
    const { origin, pathname } = new URL(url);
    this.url = url;
    this.#clock = clock;
    this.#pool = new ConnectionPool(url, network);
    this.#origin = origin;
    this.#path = trimEndOf(pathname, '/');
  }

  async run<Result>(call: Call, exchange: Exchange<Result>): Promise<Result> {
    let credentials: GitCredentials | undefined;
    let renewed = false;
    for (let waits = 0; ; ) {
      try {
        credentials ??= await call.race(readCredentials(call.remote));
        return await this.#attempt(exchange, credentials, call.signal);
      } catch (thrown) {
        const error = this.#explained(thrown, exchange, call.signal);
        const { status, retryAfter } = failureOf(error);
        if (status === 401 && !renewed) {
          renewed = true;
          const next = await call.race(readCredentials(call.remote));
          if (next?.basic === undefined || sameCredentials(next.basic, credentials?.basic)) throw error;
          credentials = next;
        } else if (retryAfter !== undefined && waits < MAX_WAITS && this.#isShort(retryAfter * 1000, call)) {
          waits += 1;
          await call.pause(retryAfter * 1000);
        } else throw error;
      }
    }
  }

  /** Closes all connections; requests in progress fail. */
  close(): Promise<void> {
    return this.#pool.close();
  }

  #isShort(wait: number, call: Call): boolean {
    return wait <= MAX_WAIT_MS && wait < call.remaining();
  }

  #explained(error: unknown, exchange: Exchange<unknown>, signal: AbortSignal): unknown {
    if (signal.aborted && isSluiceError(signal.reason)) {
      const { code, message } = signal.reason;
      const details: RequestFailure = { mayBeApplied: changesRefs(exchange) };
      return new SluiceError(code, message, { details });
    }
    if (isSluiceError(error) || error instanceof ProtocolError) return error;
    return connectionError(this.url, error, changesRefs(exchange));
  }

  async #attempt<Result>(
    exchange: Exchange<Result>,
    credentials: GitCredentials | undefined,
    signal: AbortSignal,
  ): Promise<Result> {
    const { service } = exchange;
    const posts = exchange.body !== undefined;
    await this.#pool.checkHost();
    const path = posts ? `${this.#path}/${service}` : `${this.#path}/info/refs?service=${service}`;
    const response = await this.#pool.for(credentials?.certificateAuthorities).request({
      origin: this.#origin,
      method: posts ? 'POST' : 'GET',
      path,
      headers: {
        'user-agent': `git/${AGENT}`,
        accept: posts ? `application/x-${service}-result` : '*/*',
        'accept-encoding': 'gzip',
        ...(service === 'git-upload-pack' ? { 'git-protocol': 'version=2' } : {}),
        ...(posts ? { 'content-type': `application/x-${service}-request` } : {}),
        ...(exchange.contentEncoding === undefined ? {} : { 'content-encoding': exchange.contentEncoding }),
        ...(credentials?.basic === undefined ? {} : { authorization: basic(credentials.basic) }),
      },
      body: exchange.body === undefined ? null : bodyOf(exchange.body()),
      signal,
    });
    const { statusCode: status, headers, body } = response;
    // The reader gets the error; one before or after reading must not end the process.
    body.on('error', () => undefined);
    try {
      const pieces = unpacked(body, headers['content-encoding']);
      if (status !== 200) {
        // The body is not read: it may be the answer of a service that must not be shown to the caller.
        throw statusError(this.url, status, {
          credentials,
          changesRefs: changesRefs(exchange),
          retryAfter: retryAfterOf(headers['retry-after'], this.#clock.now()),
          location: targetOf(headers.location, `${this.#origin}${path}`),
        });
      }
      const type = String(headers['content-type'] ?? 'nothing');
      const wanted = `application/x-${service}-${posts ? 'result' : 'advertisement'}`;
      if (type !== wanted) throw new NotSmartError(`it is of the type ${JSON.stringify(type.slice(0, 100))}`);
      return await exchange.read(pieces, signal);
    } finally {
      if (!body.readableEnded) body.destroy();
    }
  }
}

/** True for an error after which the server may have applied the request, though no answer arrived. */
function changesRefs({ service, body }: Exchange<unknown>): boolean {
  return service === 'git-receive-pack' && body !== undefined;
}

function bodyOf(body: Uint8Array | AsyncIterable<Uint8Array>): Uint8Array | Readable {
  return body instanceof Uint8Array ? body : Readable.from(body, { objectMode: false });
}

/** The repository that a redirect leads to, if it leads to the same place in one. */
function targetOf(header: string | string[] | undefined, asked: string): string | undefined {
  const target = typeof header === 'string' && header.length <= 2000 ? URL.parse(header, asked) : null;
  if (target === null || !/^https?:$/.test(target.protocol)) return undefined;
  const end = /\/(?:info\/refs|git-upload-pack|git-receive-pack)\/?$/.exec(target.pathname);
  return end === null ? undefined : `${target.origin}${target.pathname.slice(0, end.index)}`;
}

function basic({ username, password }: BasicCredentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
}

function sameCredentials(a: BasicCredentials, b: BasicCredentials | undefined): boolean {
  return a.username === b?.username && a.password === b.password;
}

/** The body of an answer, unpacked. Throws ProtocolError for a compression that was not requested. */
function unpacked(body: Readable, encoding: string | string[] | undefined): Readable {
  const name = String(encoding ?? 'identity').toLowerCase();
  if (name === 'identity' || name === '') return body;
  if (name !== 'gzip' && name !== 'x-gzip')
    throw new ProtocolError(`it is compressed as ${JSON.stringify(name.slice(0, 40))}, which was not requested`);
  // The reader gets an error of either.
  return pipeline(body, createGunzip(), () => {});
}

/** The seconds of a Retry-After header, which may be a number or a date; undefined if it is neither. At most a day. */
function retryAfterOf(header: string | string[] | undefined, now: number): number | undefined {
  const text = Array.isArray(header) ? header[0] : header;
  if (text === undefined || text.length > 40) return undefined;
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : Math.ceil((Date.parse(text) - now) / 1000);
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(seconds, 0), MAX_RETRY_AFTER_SECONDS);
}
