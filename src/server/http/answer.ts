import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { constants, createGzip, gzip } from 'node:zlib';
import { dump } from 'js-yaml';
import { acceptedTypes, type Representation } from './media-type.ts';
import { JSON_TYPE, YAML_TYPE } from './request-body.ts';

/** A whole answer. */
export interface Answer {
  readonly status: number;
  readonly contentType: string;
  /** Text in parts is made while it is sent: nobody waits for all of it, and it is never in memory as a whole. */
  readonly body: string | Uint8Array | Iterable<string>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer that lasts: the function writes it and returns when it has ended. It owns the response and never throws. */
export interface StreamedAnswer {
  readonly stream: (response: ServerResponse) => Promise<void>;
}

/** Smaller answers are sent faster than they are compressed. */
const GZIP_FROM = 128 * 1024;

const FAST = { level: constants.Z_BEST_SPEED };
/** Milliseconds that a client may take nothing of a body. */
const STUCK_AFTER = 60_000;
/** What the buffers of a connection hold; nothing waits for a client to take it. */
const SMALL = 16 * 1024;

/** Bytes that are still read of a body that was refused. */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;
/** Milliseconds for which a refused body is still read. */
export const DISCARD_TIMEOUT_MS = 5000;

const compress = promisify(gzip);

export function jsonAnswer(status: number, value: unknown, headers?: Readonly<Record<string, string>>): Answer {
  return textAnswer(status, JSON_TYPE, `${JSON.stringify(value)}\n`, headers);
}

export function textAnswer(
  status: number,
  contentType: string,
  body: string,
  headers?: Readonly<Record<string, string>>,
): Answer {
  return { status, contentType, body, ...(headers === undefined ? {} : { headers }) };
}

/** JSON text in the encoding that was asked for. */
export function encodedAnswer(status: number, json: string, encoding: Representation['encoding']): Answer {
  if (encoding === 'json') return textAnswer(status, JSON_TYPE, json);
  return textAnswer(status, YAML_TYPE, dump(JSON.parse(json)));
}

/** The answer with its JSON laid out over many lines. */
export function prettyAnswer(answer: Answer): Answer {
  const { body, contentType } = answer;
  if (contentType !== JSON_TYPE || body instanceof Uint8Array) return answer;
  const text = typeof body === 'string' ? body : [...body].join('');
  return { ...answer, body: `${JSON.stringify(JSON.parse(text), null, 2)}\n` };
}

/** Writes an answer. A client that is gone is no failure; one that takes nothing for `stuckAfter` milliseconds is cut off. */
export async function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
  { stuckAfter = STUCK_AFTER, discardTimeoutMs = DISCARD_TIMEOUT_MS } = {},
): Promise<void> {
  const { status } = answer;
  const headers: Record<string, string | number> = { 'Content-Type': answer.contentType, ...answer.headers };
  // A body that was not read to its end would be taken for the next request; better to part.
  const isUnread = !request.complete;
  if (isUnread) headers.Connection = 'close';
  const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
  const isWhole = body instanceof Uint8Array;
  const zips = !(isWhole && body.length < GZIP_FROM) && headers['Content-Encoding'] === undefined && takesGzip(request);
  if (zips) Object.assign(headers, { 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' });
  const sent = isWhole && zips ? await compress(body, FAST) : body;
  if (response.destroyed) return;
  if (!(sent instanceof Uint8Array && sent.length <= SMALL)) response.setTimeout(stuckAfter, () => response.destroy());
  if (sent instanceof Uint8Array) {
    response.writeHead(status, { ...headers, 'Content-Length': sent.length });
    if (isUnread) {
      response.write(sent);
      await discardBody(request, discardTimeoutMs);
      response.end();
    } else if (sent.length <= SMALL) response.end(sent);
    // While a socket waits for "drain", Node pauses the parser of the next request on it, and resets the connection of a client that was
    // quick to send that one ("Parse Error: Paused"). So the client gets the last byte only after the others have left.
    else await sendParts(response, [sent.subarray(0, -1), sent.subarray(-1)], false);
  } else await sendParts(response.writeHead(status, headers), sent, zips);
}

/**
 * Reads on what a client still sends after its answer went out. A connection that is closed with bytes unread is reset, and then
 * most clients report the reset and not the answer.
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

/** As fast as the client takes it; others have their turn between the parts. */
async function sendParts(response: ServerResponse, parts: Iterable<string | Uint8Array>, zips: boolean): Promise<void> {
  try {
    if (zips) await pipeline(parts, createGzip(FAST), response);
    else await pipeline(parts, response);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
}

export function takesGzip(request: IncomingMessage): boolean {
  const header = request.headers['accept-encoding'];
  return typeof header === 'string' && acceptedTypes(header).some(({ type }) => type === 'gzip');
}
