import { SluiceError } from '../foundation/sluice-error.ts';

const LINE_FEED = 0x0a;

/**
 * Splits a stream of bytes into lines, whatever its chunks are. It buffers at most one line of `limit` bytes; a
 * longer one is LimitExceeded.
 */
export class LineReader {
  readonly #limit: number;
  #pieces: Uint8Array[] = [];
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The lines that end in this chunk, without line feeds. */
  *push(chunk: Uint8Array): Generator<string> {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      this.#buffer(chunk.subarray(start, end));
      start = end + 1;
      yield this.rest();
    }
    this.#buffer(chunk.subarray(start));
  }

  /** Returns and clears the text after the last line feed. */
  rest(): string {
    // Decoded as one, since a character may be split between two chunks.
    const line = Buffer.concat(this.#pieces, this.#size).toString('utf8');
    this.#pieces = [];
    this.#size = 0;
    return line;
  }

  #buffer(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#size += piece.length;
    if (this.#size > this.#limit)
      throw new SluiceError('LimitExceeded', `a line of the response has more than ${this.#limit} bytes`);
    this.#pieces.push(piece);
  }
}
