import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { constants, createGzip, gzip } from 'node:zlib';
import { dump } from 'js-yaml';
import { acceptedTypes, type Representation } from './media-type.ts';
import { JSON_TYPE, YAML_TYPE } from './request-body.ts';

/** A response with its body. */
export interface ApiResponse {
  readonly status: number;
  readonly contentType: string;
  /** Parts of a text are created while they are sent, so that the whole is never in memory. */
  readonly body: string | Uint8Array | Iterable<string>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A response that is written over time: the function writes it and returns when it has ended. It owns the response and never throws. */
export interface StreamedResponse {
  readonly stream: (response: ServerResponse) => Promise<void>;
}

/** Smaller responses are sent faster than they are compressed. */
const MIN_GZIP_BYTES = 128 * 1024;

/** Characters of JSON that are converted to YAML or indented: a longer text would block all requests for more than 50 ms. */
const MAX_CONVERTED_LENGTH = 128 * 1024;

const FAST = { level: constants.Z_BEST_SPEED };
/** Milliseconds for which a client may read no byte of a body. */
const STUCK_TIMEOUT_MS = 60_000;
/** Bytes that a client must take of a body, on average over the stuck timeout. */
const MIN_BYTES_PER_SECOND = 10 * 1024;
/** Bytes of a body that are handed to the connection at once, so that the rate at which the client takes them is known. */
const PART_BYTES = 64 * 1024;
/** Size of the buffers of a connection: smaller bodies are handed to it at once. */
const MAX_UNWATCHED_BYTES = 16 * 1024;

/** Milliseconds for which a client of HTTP/1 may not read such a body, when the buffers of its connection are full. */
const SMALL_BODY_TIMEOUT_MS = 10_000;

/** Bytes of a refused body that are still read. */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;
/** Milliseconds for which a refused body is still read. */
export const DISCARD_TIMEOUT_MS = 5000;

const compress = promisify(gzip);

export function jsonResponse(status: number, value: unknown, headers?: Readonly<Record<string, string>>): ApiResponse {
  return textResponse(status, JSON_TYPE, `${JSON.stringify(value)}\n`, headers);
}

export function textResponse(
  status: number,
  contentType: string,
  body: string,
  headers?: Readonly<Record<string, string>>,
): ApiResponse {
  return { status, contentType, body, ...(headers === undefined ? {} : { headers }) };
}

/** JSON text in the requested encoding. A long text stays JSON, which every client of the Kubernetes API reads. */
export function encodedResponse(status: number, json: string, encoding: Representation['encoding']): ApiResponse {
  if (encoding === 'json' || json.length > MAX_CONVERTED_LENGTH) return textResponse(status, JSON_TYPE, json);
  return textResponse(status, YAML_TYPE, dump(JSON.parse(json)));
}

/** The response with its JSON indented over many lines, unless it is long. */
export function prettyResponse(answer: ApiResponse): ApiResponse {
  const { body, contentType } = answer;
  if (contentType !== JSON_TYPE || typeof body !== 'string' || body.length > MAX_CONVERTED_LENGTH) return answer;
  return { ...answer, body: `${JSON.stringify(JSON.parse(body), null, 2)}\n` };
}

/**
 * Writes a response. A disconnected client is not a failure; one that reads nothing for `stuckTimeoutMs` milliseconds, or too slowly,
 * is disconnected.
 */
export async function sendResponse(
  request: IncomingMessage,
  response: ServerResponse,
  answer: ApiResponse,
  {
    stuckTimeoutMs = STUCK_TIMEOUT_MS,
    minBytesPerSecond = MIN_BYTES_PER_SECOND,
    discardTimeoutMs = DISCARD_TIMEOUT_MS,
    smallBodyTimeoutMs = SMALL_BODY_TIMEOUT_MS,
  } = {},
): Promise<void> {
  const { status } = answer;
  const headers: Record<string, string | number> = { 'Content-Type': answer.contentType, ...answer.headers };
  // The unread part of a body would be parsed as the next request, so the connection ends. HTTP/2 ends the stream alone.
  const isUnread = !request.complete && request.httpVersionMajor < 2;
  if (isUnread) headers.Connection = 'close';
  const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
  const isWhole = body instanceof Uint8Array;
  const zips =
    !(isWhole && body.length < MIN_GZIP_BYTES) && headers['Content-Encoding'] === undefined && acceptsGzip(request);
  if (zips) Object.assign(headers, { 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' });
  const sent = isWhole && zips ? await compress(body, FAST) : body;
  if (response.destroyed) return;
  if (!(sent instanceof Uint8Array && sent.length <= MAX_UNWATCHED_BYTES))
    response.setTimeout(stuckTimeoutMs, () => response.destroy());
  else if (request.httpVersionMajor < 2) limitSmallBody(response, smallBodyTimeoutMs);
  const pace = { windowMs: stuckTimeoutMs, minBytesPerSecond };
  if (sent instanceof Uint8Array) {
    response.writeHead(status, { ...headers, 'Content-Length': sent.length });
    if (isUnread) {
      const discarded = discardBody(request, discardTimeoutMs);
      if (sent.length <= MAX_UNWATCHED_BYTES) response.write(sent);
      else await sendParts(response, withMinRate(response, [sent], pace), { zips: false, end: false });
      await discarded;
      response.end();
    } else if (sent.length <= MAX_UNWATCHED_BYTES) response.end(sent);
    // While a socket waits for "drain", Node pauses the parser of the next request on it, and resets the connection of a client that
    // was quick to send that one ("Parse Error: Paused"). So the last byte is sent only after all others have been sent.
    else
      await sendParts(response, withMinRate(response, [sent.subarray(0, -1), sent.subarray(-1)], pace), {
        zips: false,
      });
  } else await sendParts(response.writeHead(status, headers), withMinRate(response, sent, pace), { zips });
}

/**
 * Disconnects a client that does not read a small response in time. The timeout of the socket would not do: it begins again with whatever
 * the client sends, for instance the next request.
 */
function limitSmallBody(response: ServerResponse, timeoutMs: number): void {
  const start = () => {
    const timer = setTimeout(() => response.destroy(), timeoutMs).unref();
    const stop = () => clearTimeout(timer);
    response.once('finish', stop).once('close', stop);
  };
  // Responses to pipelined requests wait for the one before them.
  if (response.socket === null) response.once('socket', start);
  else start();
}

/** The same bytes in small parts; disconnects a client that takes fewer than it has to in any window of time. */
function* withMinRate(
  response: ServerResponse,
  parts: Iterable<string | Uint8Array>,
  { windowMs, minBytesPerSecond }: { readonly windowMs: number; readonly minBytesPerSecond: number },
): Generator<Uint8Array> {
  let takenBytes = 0;
  const timer = setInterval(() => {
    if (takenBytes < (minBytesPerSecond * windowMs) / 1000) response.destroy();
    takenBytes = 0;
  }, windowMs).unref();
  response.once('close', () => clearInterval(timer));
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : part;
    for (let at = 0; at < bytes.length; at += PART_BYTES) {
      const piece = bytes.subarray(at, at + PART_BYTES);
      takenBytes += piece.length;
      yield piece;
    }
  }
}

/**
 * Reads what a client still sends after its response. A connection that is closed with unread bytes is reset, and most clients report the
 * reset and not the response.
 */
function discardBody(request: IncomingMessage, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    let left = MAX_DISCARDED_BYTES;
    const done = () => {
      clearTimeout(timer);
      request.off('data', discard).off('end', done).off('close', done).off('error', done);
      resolve();
    };
    const discard = (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) done();
    };
    const timer = setTimeout(done, timeoutMs);
    if (request.complete || request.destroyed) done();
    else request.on('data', discard).on('end', done).on('close', done).on('error', done).resume();
  });
}

/** Sends parts as fast as the client reads them; other requests have their turn between the parts. */
async function sendParts(
  response: ServerResponse,
  parts: Iterable<Uint8Array>,
  { zips, end = true }: { readonly zips: boolean; readonly end?: boolean },
): Promise<void> {
  try {
    if (zips) await pipeline(parts, createGzip(FAST), response);
    else await pipeline(parts, response, { end });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
}

export function acceptsGzip(request: IncomingMessage): boolean {
  const header = request.headers['accept-encoding'];
  return typeof header === 'string' && acceptedTypes(header).some(({ type }) => type === 'gzip');
}
