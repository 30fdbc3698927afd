import { type Dispatcher, errors } from 'undici';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../foundation/time/clock.ts';
import { measurement } from '../../foundation/time/measurement.ts';
import type { ClusterAccess, Proof } from '../access/cluster-access.ts';
import { connectionError, isReset, isUntrusted } from './connection-error.ts';
import { openPool, type PoolCertificates } from './open-pool.ts';
import type { RequestHeaders } from './request-headers.ts';
import { retryDelay } from './retry-delay.ts';
import { statusErrorOf } from './status-error.ts';
import { warningsOf } from './warnings.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface Call {
  readonly method: Method;
  /** With a leading slash, encoded, and with the query. */
  readonly path: string;
  readonly body?: string;
  readonly contentType?: string;
  /** Default `application/json`. */
  readonly accept?: string;
  /** Further headers; lower-case names. */
  readonly headers?: RequestHeaders;
  readonly signal?: AbortSignal | undefined;
  /** The response may have `pageBytes`. */
  readonly isPage?: boolean;
  /** Receives the warnings of the response instead of `ConnectionOptions.onWarning`. */
  readonly onWarning?: ((text: string) => void) | undefined;
}

export interface HttpResponse {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

export interface ConnectionOptions {
  readonly clock?: Clock;
  /** A number from 0 to below 1, for jitter. Default Math.random. */
  readonly random?: () => number;
  /** The User-Agent header; field managers are named after its first part. Default `sluice`. */
  readonly userAgent?: string;
  /** Receives warnings of the server, as kubectl prints them after `Warning: `. */
  readonly onWarning?: (text: string) => void;
  /** Limits that differ from the defaults. */
  readonly limits?: Partial<ConnectionLimits>;
}

export interface ConnectionLimits {
  /** Until a connection is open, until a response begins, and between two chunks of it. Milliseconds. */
  readonly connect: number;
  readonly headers: number;
  readonly body: number;
  /** For a whole call with all its attempts, except watches. Milliseconds. */
  readonly call: number;
  /** Before the second attempt where the server sends no Retry-After; doubled before each further one. Milliseconds. */
  readonly retry: number;
  /** The largest response that is read. Bytes. */
  readonly responseBytes: number;
  /**
   * The largest page of a list that is read where it can be requested with fewer items. The event loop does nothing else while a response is
   * parsed, and the Lease of a leader has to be renewed meanwhile.
   */
  readonly pageBytes: number;
}

const LIMITS: ConnectionLimits = {
  connect: 10_000,
  // Some servers render packages before they respond, and abort that after 34 to 60 seconds.
  headers: 90_000,
  body: 60_000,
  call: 300_000,
  retry: 100,
  responseBytes: 256 * 1024 * 1024,
  pageBytes: 16 * 1024 * 1024,
};
/** Each attempt of a request, when its response begins; `code` is `<error>` if there was no response. */
export const clusterRequests = measurement<{ readonly code: string; readonly method: string; readonly host: string }>(
  'sluice:cluster-request',
);

const MAX_ERROR_BYTES = 1024 * 1024;
const MAX_ATTEMPTS = 4;

/**
 * The connections to one server: one pool for all requests, kept open between calls.
 *
 * - A read is retried if the connection breaks, and after 503 with Retry-After; every call after 429, which means that
 *   the server did not process it. Other calls are not retried: after a broken connection the outcome of a write is unknown.
 * - Errors: those of the server with a status from 400 (`statusErrorOf`); Unavailable and Timeout with the server's
 *   address if the connection fails or the caller's signal aborts; LimitExceeded for a response that is too large.
 */
export class Connection {
  readonly access: ClusterAccess;
  readonly clock: Clock;
  readonly random: () => number;
  readonly #userAgent: string;
  readonly #onWarning: ((text: string) => void) | undefined;
  readonly #limits: ConnectionLimits;
  readonly #origin: string;
  readonly #host: string;
  readonly #basePath: string;
  /** What the pool was opened with. */
  #pooled: PoolCertificates;
  #dispatcher: Dispatcher;

  constructor(access: ClusterAccess, options: ConnectionOptions = {}) {
    this.access = access;
    this.clock = options.clock ?? systemClock;
    this.random = options.random ?? Math.random;
    this.#userAgent = options.userAgent ?? 'sluice';
    this.#onWarning = options.onWarning;
    this.#limits = { ...LIMITS, ...options.limits };
    const { origin, host, pathname } = new URL(access.server);
    this.#origin = origin;
    this.#host = host;
    this.#basePath = pathname === '/' ? '' : pathname;
    this.#pooled = { certificate: undefined, ca: access.tls.ca };
    this.#dispatcher = openPool(access, this.#pooled, this.#limits.connect);
  }

  /** Sends a request and reads the whole response. */
  async call(call: Call): Promise<HttpResponse> {
    const end = this.#deadline(call.signal);
    try {
      for (let attempt = 1; ; attempt += 1) {
        const result = await this.#attempt(call, end.signal).catch((error: unknown) => {
          if (call.method !== 'GET' || attempt >= MAX_ATTEMPTS || end.signal.aborted || !isReset(error)) throw error;
          return { retryAfter: undefined };
        });
        if ('text' in result) return result;
        const delay = retryDelay(attempt, result.retryAfter, this.random, this.#limits.retry);
        if ('error' in result && (attempt >= MAX_ATTEMPTS || delay === undefined)) throw result.error;
        await this.#pause(delay ?? 0, end.signal);
      }
    } catch (error) {
      throw this.#explained(error, call.signal);
    } finally {
      end.clear();
    }
  }

  /**
   * Sends a request and returns the response in chunks, without a time limit between two of them. Abort the signal to end it. It is sent
   * again after 429, when the server wants it.
   */
  async open(call: Call & { readonly signal: AbortSignal }): Promise<AsyncIterator<Uint8Array>> {
    try {
      for (let attempt = 1; ; attempt += 1) {
        const response = await this.#send(call, call.signal);
        if (response.statusCode < 300) {
          // The reader receives errors; an abort before the first read must not end the process.
          response.body.on('error', () => undefined);
          return response.body[Symbol.asyncIterator]();
        }
        const error = await this.#errorOf(response);
        const retryAfter = secondsOf(response.headers['retry-after']);
        const delay = retryDelay(attempt, retryAfter, this.random, this.#limits.retry);
        if (response.statusCode !== 429 || attempt >= MAX_ATTEMPTS || delay === undefined) throw error;
        await this.#pause(delay, call.signal);
      }
    } catch (error) {
      throw this.#explained(error, call.signal);
    }
  }

  /** Closes all connections; calls in flight fail. */
  async close(): Promise<void> {
    await this.#dispatcher.destroy();
  }

  /** The error to throw for an error of a call or of the reading of an opened response. */
  explain(error: unknown): SluiceError {
    if (error instanceof SluiceError) return error;
    // The cluster may have new authorities, which the next call reads.
    if (isUntrusted(error)) this.access.credentials.forget();
    return connectionError(error, this.access);
  }

  async #attempt(
    call: Call,
    signal: AbortSignal,
  ): Promise<HttpResponse | { readonly error: SluiceError; readonly retryAfter: number | undefined }> {
    const response = await this.#send(call, signal);
    const { statusCode: status, headers } = response;
    if (status < 300) {
      const { responseBytes, pageBytes } = this.#limits;
      const text = await this.#read(response.body, call.isPage === true ? pageBytes : responseBytes);
      return { status, contentType: String(headers['content-type'] ?? ''), text };
    }
    const error = await this.#errorOf(response);
    const retryAfter = secondsOf(headers['retry-after']);
    const again = status === 429 || (status === 503 && call.method === 'GET' && retryAfter !== undefined);
    if (again) return { error, retryAfter };
    throw error;
  }

  async #send(call: Call, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const { method, path, body, contentType = 'application/json', accept = 'application/json', headers } = call;
    const proof = await this.access.credentials.proof();
    const count = (code: string) => clusterRequests.publish({ code, method, host: this.#host });
    const sent = this.#poolFor(proof).request({
      origin: this.#origin,
      method,
      path: this.#basePath + path,
      headers: {
        'user-agent': this.#userAgent,
        accept,
        ...proof.headers,
        ...(body === undefined ? {} : { 'content-type': contentType }),
        ...headers,
      },
      body: body ?? null,
      signal,
      headersTimeout: this.#limits.headers,
      // #read applies the limit between chunks by the clock of this connection, since the pool's timer is a second late.
      bodyTimeout: 0,
    });
    const response = await sent.catch((error: unknown) => {
      count('<error>');
      throw error;
    });
    count(String(response.statusCode));
    const onWarning = call.onWarning ?? this.#onWarning;
    if (onWarning !== undefined) for (const warning of warningsOf(response.headers.warning)) onWarning(warning);
    return response;
  }

  /** The whole response; Timeout if its next chunk does not arrive in time, LimitExceeded if it has more bytes than `limit`. */
  async #read(body: Dispatcher.ResponseData['body'], limit: number): Promise<string> {
    const wait = () => this.clock.schedule(this.#limits.body, () => body.destroy(new errors.BodyTimeoutError()));
    const pieces: Uint8Array[] = [];
    let size = 0;
    let cancel = wait();
    try {
      for await (const piece of body as AsyncIterable<Uint8Array>) {
        cancel();
        size += piece.length;
        if (size > limit)
          throw new SluiceError(
            'LimitExceeded',
            `the response has more than ${limit} bytes; request less, for instance by a selector`,
          );
        pieces.push(piece);
        cancel = wait();
      }
    } finally {
      cancel();
    }
    return Buffer.concat(pieces, size).toString('utf8');
  }

  async #errorOf(response: Dispatcher.ResponseData): Promise<SluiceError> {
    const error = statusErrorOf(response.statusCode, await this.#read(response.body, MAX_ERROR_BYTES));
    if (!isSluiceError(error, 'Unauthenticated')) return error;
    const { credentials, server, source, user } = this.access;
    credentials.forget();
    const who = user === '' ? 'without a user' : `as user "${user}"`;
    return new SluiceError(
      'Unauthenticated',
      `${error.message}: ${server} does not accept the credentials (${who}, ${source}); log in again, or use a kubeconfig with valid credentials ("sluice up" writes one at each start)`,
      { details: error.details },
    );
  }

  #explained(error: unknown, signal: AbortSignal | undefined): SluiceError {
    if (signal?.aborted === true)
      return new SluiceError('Unavailable', `the call to ${this.access.server} was aborted`, { cause: signal.reason });
    return this.explain(error);
  }

  /** A signal that aborts with the caller's, or with Timeout when the whole call takes too long. */
  #deadline(signal: AbortSignal | undefined): { readonly signal: AbortSignal; clear(): void } {
    const end = new AbortController();
    const forward = () => end.abort(signal?.reason);
    const cancel = this.clock.schedule(this.#limits.call, () =>
      end.abort(
        new SluiceError(
          'Timeout',
          `${this.access.server} did not respond within ${this.#limits.call / 1000} s; try again`,
        ),
      ),
    );
    if (signal?.aborted === true) forward();
    else signal?.addEventListener('abort', forward);
    return {
      signal: end.signal,
      clear() {
        cancel();
        signal?.removeEventListener('abort', forward);
      },
    };
  }

  /** Resolves after a time; rejects with the signal's reason. */
  #pause(milliseconds: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = () => reject(signal.reason);
    const cancel = this.clock.schedule(milliseconds, resolve);
    // Neither the clock nor an idle connection keeps the process alive, but a caller waits for the response.
    const hold = setInterval(() => undefined, 60_000);
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp);
    return promise.finally(() => {
      cancel();
      clearInterval(hold);
      signal.removeEventListener('abort', giveUp);
    });
  }

  /** The pool, a new one if there is another client certificate, or other authorities. */
  #poolFor({ certificate, ca = this.access.tls.ca }: Proof): Dispatcher {
    const { certificate: pooled, ca: trusted } = this.#pooled;
    if (certificate?.cert === pooled?.cert && certificate?.key === pooled?.key && ca === trusted)
      return this.#dispatcher;
    const old = this.#dispatcher;
    this.#pooled = { certificate, ca };
    this.#dispatcher = openPool(this.access, this.#pooled, this.#limits.connect);
    // Calls in flight complete, and their callers receive errors; closing is not awaited.
    old.close().catch(() => undefined);
    return this.#dispatcher;
  }
}

/** The seconds of Retry-After; undefined for none and for the form with a date, which Kubernetes does not use. */
function secondsOf(header: string | string[] | undefined): number | undefined {
  const text = Array.isArray(header) ? header[0] : header;
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}
