import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { load } from 'js-yaml';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { type DecodedText, decodeJson } from './json-text.ts';
import { parseMediaType } from './media-type.ts';

/** Turns the protobuf form of a Kubernetes object into the object. Throws BadRequest or UnsupportedMediaType. */
export type ProtobufDecoder = (bytes: Uint8Array) => Record<string, unknown>;

export interface RequestBody {
  /** `application/json`; what a body without a Content-Type counts as. */
  readonly mediaType: string;
  readonly bytes: Buffer;
}

export const JSON_TYPE = 'application/json';
export const YAML_TYPE = 'application/yaml';
export const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf';

export const EMPTY_BODY: RequestBody = { mediaType: JSON_TYPE, bytes: Buffer.alloc(0) };

const MAX_YAML_DEPTH = 100;
/** YAML is parsed some fifty times more slowly than JSON: this much takes some 20 ms. */
const MAX_YAML_LENGTH = 128 * 1024;

const inflate = promisify(gunzip);

export interface ReadBodyOptions {
  /** Maximum bytes of a body, inflated. */
  readonly limit: number;
  readonly clock: Clock;
  /** Milliseconds within which the whole body must arrive, however steadily it does. */
  readonly timeoutMs: number;
  /** Called with the number of bytes before they are kept; may throw to refuse them. */
  readonly hold: (bytes: number) => void;
}

/**
 * Reads a body, inflated if it comes as gzip. LimitExceeded, Timeout, BadRequest, UnsupportedMediaType, and the errors of `hold`.
 */
export async function readBody(request: IncomingMessage, options: ReadBodyOptions): Promise<RequestBody> {
  const { limit, hold } = options;
  const mediaType = parseMediaType(request.headers['content-type'] ?? JSON_TYPE).type;
  const bytes = await collect(request, options);
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding === 'identity') return { mediaType, bytes };
  if (encoding !== 'gzip')
    throw new SluiceError('UnsupportedMediaType', `the content encoding ${JSON.stringify(encoding)} is not known`);
  try {
    const inflated = await inflate(bytes, { maxOutputLength: limit });
    hold(inflated.length);
    return { mediaType, bytes: inflated };
  } catch (error) {
    if (isSluiceError(error)) throw error;
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limit);
    throw new SluiceError('BadRequest', `the body is not valid gzip: ${messageOf(error)}`);
  }
}

/** Reads a body as one value. An empty body is undefined. */
export function decodeBody(
  { mediaType, bytes }: RequestBody,
  decodeProtobuf: ProtobufDecoder,
  maxValues?: number,
): DecodedText {
  if (bytes.length === 0) return { value: undefined, duplicates: [] };
  if (mediaType === PROTOBUF_TYPE) return { value: decodeProtobuf(bytes), duplicates: [] };
  if (mediaType === JSON_TYPE) return decodeJson(textOf(bytes), maxValues);
  if (mediaType === YAML_TYPE) return decodeYaml(textOf(bytes), maxValues);
  throw unsupportedType([JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE]);
}

/** Reads one YAML document, or JSON, which clients send under the names of YAML too. */
export function decodeYaml(text: string, maxValues?: number): DecodedText {
  if (/^\s*[{[]/.test(text)) return decodeJson(text, maxValues);
  if (text.length > MAX_YAML_LENGTH)
    throw new SluiceError('LimitExceeded', `YAML of more than ${MAX_YAML_LENGTH} characters is not read; send JSON`);
  try {
    // Aliases could make a small text a huge object, and manifests of clients have none.
    return { value: load(text, { maxDepth: MAX_YAML_DEPTH, maxAliases: 0 }), duplicates: [] };
  } catch (error) {
    // The first line has the error and its position; those below quote the text, which may be a secret.
    const [problem = ''] = messageOf(error).split('\n', 1);
    throw new SluiceError('BadRequest', `the body is not valid YAML: ${problem.slice(0, 300)}`);
  }
}

export function unsupportedType(known: readonly string[]): SluiceError {
  return new SluiceError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${known.join(', ')}`,
  );
}

/** Valid UTF-8, or BadRequest. */
export function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new SluiceError('BadRequest', 'the body is not valid UTF-8');
  }
}

/** The bytes of a body. A refused request is not destroyed: the response still has to go through its socket. */
function collect(request: IncomingMessage, { limit, clock, timeoutMs, hold }: ReadBodyOptions): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return Promise.reject(tooLarge(limit));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const take = (chunk: Buffer) => {
      length += chunk.length;
      try {
        if (length > limit) throw tooLarge(limit);
        hold(chunk.length);
      } catch (error) {
        fail(error);
        return;
      }
      chunks.push(chunk);
    };
    const finish = () => {
      // Over HTTP/2 a client can end a request in the middle of its body without an error.
      if (!request.complete || isShort(request, length)) {
        cutOff();
        return;
      }
      leave();
      resolve(Buffer.concat(chunks, length));
    };
    const fail = (error: unknown) => {
      leave();
      request.pause();
      reject(error);
    };
    const cutOff = (error?: unknown) =>
      fail(new SluiceError('BadRequest', 'the request ended before its body did', { cause: error }));
    const cancel = clock.schedule(timeoutMs, () => {
      const text = `the body of the request did not arrive within ${timeoutMs} ms; send it again, or a smaller one`;
      fail(new SluiceError('Timeout', text));
    });
    const leave = () => {
      cancel();
      request.off('data', take).off('end', finish).off('error', cutOff).off('close', cutOff);
    };
    if (request.destroyed && !request.readableEnded) cutOff();
    else request.on('data', take).on('end', finish).on('error', cutOff).on('close', cutOff);
  });
}

function isShort({ headers }: IncomingMessage, length: number): boolean {
  return headers['content-length'] !== undefined && Number(headers['content-length']) !== length;
}

function tooLarge(limit: number): SluiceError {
  return new SluiceError('LimitExceeded', `Request entity too large: limit is ${limit}`);
}
