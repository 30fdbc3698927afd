import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

const compress = promisify(gzip);

/** A document with its HTTP representation. */
export class Document {
  readonly contentType: string;
  readonly body: Buffer;
  /** SHA-256 of the body, hexadecimal; what `hash` in the addresses of OpenAPI documents is. */
  readonly hash: string;
  #gzipped: Promise<Buffer> | undefined;

  constructor(contentType: string, body: Buffer) {
    this.contentType = contentType;
    this.body = body;
    this.hash = createHash('sha256').update(body).digest('hex');
  }

  /** The ETag with quotes, as in the header. */
  get etag(): string {
    return `"${this.hash}"`;
  }

  /** The compressed body; computed once, on the first call. */
  gzip(): Promise<Buffer> {
    this.#gzipped ??= compress(this.body);
    return this.#gzipped;
  }
}
