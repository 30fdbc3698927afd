import { SluiceError } from '../foundation/sluice-error.ts';

const LINE_FEED = 0x0a;

/**
 * Cuts a stream of bytes into lines, wherever it was cut before. What is held is at most one line of `limit` bytes; a
 * longer one is LimitExceeded.
 */
export class LineReader {
  readonly #limit: number;
  #pieces: Uint8Array[] = [];
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The lines that end in this chunk, without their ends. */
  *push(chunk: Uint8Array): Generator<string> {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      this.#hold(chunk.subarray(start, end));
      start = end + 1;
      yield this.rest();
    }
    this.#hold(chunk.subarray(start));
  }

  /** What came after the last line end; forgets it. */
  rest(): string {
    // Decoded as one: a character may lie in two chunks.
    const line = Buffer.concat(this.#pieces, this.#size).toString('utf8');
    this.#pieces = [];
    this.#size = 0;
    return line;
  }

  #hold(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#size += piece.length;
    if (this.#size > this.#limit)
      throw new SluiceError('LimitExceeded', `a line of the answer has more than ${this.#limit} bytes`);
    this.#pieces.push(piece);
  }
}
