import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../foundation/clock.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { BasicCredentials, GitRemote } from '../git-repository.ts';
import { readCredentials } from '../remote-credentials.ts';
import { openPool } from './connection-pool.ts';
import { connectionError, type HttpFailure, statusError } from './http-error.ts';
import { ProtocolError } from './protocol-error.ts';

export type Service = 'git-upload-pack' | 'git-receive-pack';

export interface Exchange<Result> {
  readonly service: Service;
  /** What is posted, made anew for each try; without it, the server's advertisement is asked for. */
  readonly body?: () => Uint8Array | AsyncIterable<Uint8Array>;
  readonly contentEncoding?: 'gzip' | undefined;
  /** Milliseconds for all of it. */
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
  /**
   * Reads the answer, which it must bound, and ends what it does when the signal aborts. What it leaves unread is dropped with the
   * connection.
   */
  readonly read: (pieces: AsyncIterable<Uint8Array>, signal: AbortSignal) => Promise<Result>;
}

/** The server answers, but not in Git's smart HTTP protocol. */
export class NotSmartError extends ProtocolError {}

const AGENT = 'sluice';
const ERROR_BYTES = 4096;

/**
 * One repository behind Git's smart HTTP protocol. Redirects are never followed: they would carry credentials elsewhere. After 401
 * the credentials are asked for once more, and the request is sent again if they are others.
 *
 * Errors: SluiceError with HttpFailure as details, and ProtocolError as thrown by `read`. No message holds a secret.
 */
export class SmartHttp {
  readonly url: string;
  readonly #clock: Clock;
  readonly #pool: Dispatcher;
  readonly #origin: string;
  readonly #path: string;

  /** `url` has been checked; see remote-url.ts. */
  constructor(url: string, clock: Clock) {
    const { origin, pathname } = new URL(url);
    this.url = url;
    this.#clock = clock;
    this.#pool = openPool(url);
    this.#origin = origin;
    this.#path = pathname.replace(/\/+$/, '');
  }

  async run<Result>(remote: GitRemote, exchange: Exchange<Result>): Promise<Result> {
    const name = exchange.body === undefined ? 'asking for what it can do' : exchange.service;
    const end = new AbortController();
    const giveUp = () => end.abort(failure('Unavailable', `${name} at ${this.url} was cancelled`));
    const cancelTimer = this.#clock.schedule(exchange.timeout, () =>
      end.abort(failure('Timeout', `${name} at ${this.url} did not end within ${exchange.timeout / 1000} s`)),
    );
    if (exchange.signal?.aborted === true) giveUp();
    else exchange.signal?.addEventListener('abort', giveUp, { once: true });
    try {
      return await this.#authenticated(remote, exchange, end.signal);
    } catch (error) {
      if (end.signal.aborted) throw end.signal.reason;
      if (isSluiceError(error) || error instanceof ProtocolError) throw error;
      throw connectionError(this.url, error);
    } finally {
      cancelTimer();
      exchange.signal?.removeEventListener('abort', giveUp);
    }
  }

  /** Closes all connections; what is under way fails. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  async #authenticated<Result>(remote: GitRemote, exchange: Exchange<Result>, signal: AbortSignal): Promise<Result> {
    let credentials = (await readCredentials(remote))?.basic;
    for (let attempt = 1; ; attempt += 1) {
      signal.throwIfAborted();
      try {
        return await this.#attempt(exchange, credentials, signal);
      } catch (error) {
        const unknown = isSluiceError(error) && (error.details as HttpFailure | undefined)?.status === 401;
        if (!unknown || attempt > 1) throw error;
        const renewed = (await readCredentials(remote))?.basic;
        if (renewed === undefined || sameCredentials(renewed, credentials)) throw error;
        credentials = renewed;
      }
    }
  }

  async #attempt<Result>(
    exchange: Exchange<Result>,
    credentials: BasicCredentials | undefined,
    signal: AbortSignal,
  ): Promise<Result> {
    const { service } = exchange;
    const posts = exchange.body !== undefined;
    const response = await this.#pool.request({
      origin: this.#origin,
      method: posts ? 'POST' : 'GET',
      path: posts ? `${this.#path}/${service}` : `${this.#path}/info/refs?service=${service}`,
      headers: {
        'user-agent': `git/${AGENT}`,
        accept: posts ? `application/x-${service}-result` : '*/*',
        ...(service === 'git-upload-pack' ? { 'git-protocol': 'version=2' } : {}),
        ...(posts ? { 'content-type': `application/x-${service}-request` } : {}),
        ...(exchange.contentEncoding === undefined ? {} : { 'content-encoding': exchange.contentEncoding }),
        ...(credentials === undefined ? {} : { authorization: basic(credentials) }),
      },
      body: exchange.body === undefined ? null : bodyOf(exchange.body()),
      signal,
    });
    const { statusCode, headers, body } = response;
    // Whoever reads hears of an error; one that comes before or after that must not end the process.
    body.on('error', () => undefined);
    try {
      if (statusCode !== 200) {
        const said = String(headers['content-type']).startsWith('text/plain') ? await firstText(body) : '';
        const retryAfter = secondsOf(headers['retry-after']);
        throw statusError(this.url, statusCode, credentials !== undefined, without(said, credentials), retryAfter);
      }
      const type = String(headers['content-type'] ?? 'nothing');
      const wanted = `application/x-${service}-${posts ? 'result' : 'advertisement'}`;
      if (type !== wanted) throw new NotSmartError(`it is of the type ${JSON.stringify(type.slice(0, 100))}`);
      return await exchange.read(body, signal);
    } finally {
      if (!body.readableEnded) body.destroy();
    }
  }
}

function failure(code: 'Timeout' | 'Unavailable', message: string): SluiceError {
  const details: HttpFailure = { mayBeDone: true };
  return new SluiceError(code, message, { details });
}

function bodyOf(body: Uint8Array | AsyncIterable<Uint8Array>): Uint8Array | Readable {
  return body instanceof Uint8Array ? body : Readable.from(body, { objectMode: false });
}

function basic({ username, password }: BasicCredentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
}

function sameCredentials(a: BasicCredentials, b: BasicCredentials | undefined): boolean {
  return a.username === b?.username && a.password === b.password;
}

/** A server may send back what it was sent. */
function without(said: string, credentials: BasicCredentials | undefined): string {
  if (credentials === undefined) return said;
  const secrets = [credentials.password, encodeURIComponent(credentials.password), basic(credentials).slice(6)];
  return secrets.filter((secret) => secret !== '').reduce((text, secret) => text.replaceAll(secret, '***'), said);
}

async function firstText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body) {
    pieces.push(piece);
    size += piece.length;
    if (size >= ERROR_BYTES) break;
  }
  return Buffer.concat(pieces).toString('utf8', 0, ERROR_BYTES);
}

/** The seconds of Retry-After; undefined for none and for a date. */
function secondsOf(header: string | string[] | undefined): number | undefined {
  const text = Array.isArray(header) ? header[0] : header;
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}
