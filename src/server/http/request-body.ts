import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { load } from 'js-yaml';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
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

const MAX_YAML_DEPTH = 100;
/** YAML is read some fifty times more slowly than JSON. */
const MAX_YAML_LENGTH = 1024 * 1024;

const inflate = promisify(gunzip);

/** Reads a body of at most `limit` bytes, inflated if it comes as gzip. LimitExceeded, BadRequest, UnsupportedMediaType. */
export async function readBody(request: IncomingMessage, limit: number): Promise<RequestBody> {
  const mediaType = parseMediaType(request.headers['content-type'] ?? JSON_TYPE).type;
  const bytes = await collect(request, limit);
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding === 'identity') return { mediaType, bytes };
  if (encoding !== 'gzip')
    throw new SluiceError('UnsupportedMediaType', `the content encoding ${JSON.stringify(encoding)} is not known`);
  try {
    return { mediaType, bytes: await inflate(bytes, { maxOutputLength: limit }) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limit);
    throw new SluiceError('BadRequest', `the body is not valid gzip: ${messageOf(error)}`);
  }
}

/** Reads a body as one value. An empty body is undefined. */
export function decodeBody({ mediaType, bytes }: RequestBody, decodeProtobuf: ProtobufDecoder): DecodedText {
  if (bytes.length === 0) return { value: undefined, duplicates: [] };
  if (mediaType === PROTOBUF_TYPE) return { value: decodeProtobuf(bytes), duplicates: [] };
  if (mediaType === JSON_TYPE) return decodeJson(textOf(bytes));
  if (mediaType === YAML_TYPE) return decodeYaml(textOf(bytes));
  throw unsupportedType([JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE]);
}

/** Reads one YAML document, or JSON, which clients send under the names of YAML too. */
export function decodeYaml(text: string): DecodedText {
  if (/^\s*[{[]/.test(text)) return decodeJson(text);
  if (text.length > MAX_YAML_LENGTH)
    throw new SluiceError('LimitExceeded', `YAML of more than ${MAX_YAML_LENGTH} characters is not read; send JSON`);
  try {
    // Aliases could make a small text a huge object, and what a client sends has none.
    return { value: load(text, { maxDepth: MAX_YAML_DEPTH, maxAliases: 0 }), duplicates: [] };
  } catch (error) {
    // The first line says what and where; those below quote the text, which may be a secret.
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

/** UTF-8 without a flaw, or BadRequest. */
export function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new SluiceError('BadRequest', 'the body is not valid UTF-8');
  }
}

async function collect(request: IncomingMessage, limit: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge(limit);
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    // Leaving the loop must not tear down the socket: the answer still has to go through it.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > limit) throw tooLarge(limit);
      chunks.push(chunk);
    }
  } catch (error) {
    if (isSluiceError(error)) throw error;
    throw new SluiceError('BadRequest', 'the request ended before its body did', { cause: error });
  }
  return Buffer.concat(chunks, length);
}

function tooLarge(limit: number): SluiceError {
  return new SluiceError('LimitExceeded', `Request entity too large: limit is ${limit}`);
}
