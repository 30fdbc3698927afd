import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { dump } from 'js-yaml';
import { acceptedTypes, type Representation } from './media-type.ts';
import { JSON_TYPE, YAML_TYPE } from './request-body.ts';

/** A whole answer. */
export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer that lasts: the function writes it and returns when it has ended. It owns the response and never throws. */
export interface StreamedAnswer {
  readonly stream: (response: ServerResponse) => Promise<void>;
}

/** Smaller answers are sent faster than they are compressed. */
const GZIP_FROM = 128 * 1024;

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
  if (answer.contentType !== JSON_TYPE || typeof answer.body !== 'string') return answer;
  return { ...answer, body: `${JSON.stringify(JSON.parse(answer.body), null, 2)}\n` };
}

/** Writes an answer. A client that is gone is no failure. */
export async function sendAnswer(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
  let body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
  const headers: Record<string, string | number> = { 'Content-Type': answer.contentType, ...answer.headers };
  if (body.length >= GZIP_FROM && headers['Content-Encoding'] === undefined && takesGzip(request)) {
    body = await compress(body, { level: constants.Z_BEST_SPEED });
    headers['Content-Encoding'] = 'gzip';
    headers.Vary = 'Accept-Encoding';
  }
  headers['Content-Length'] = body.length;
  // A body that was not read to its end would be taken for the next request; better to part.
  if (!request.complete) headers.Connection = 'close';
  if (response.destroyed) return;
  response.writeHead(answer.status, headers).end(body);
}

export function takesGzip(request: IncomingMessage): boolean {
  const header = request.headers['accept-encoding'];
  return typeof header === 'string' && acceptedTypes(header).some(({ type }) => type === 'gzip');
}
