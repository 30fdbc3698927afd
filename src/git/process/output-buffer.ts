/** Collects chunks of a stream and hands out lines and byte runs, without joining chunks again and again. */
export class OutputBuffer {
  #data = Buffer.allocUnsafe(64 * 1024);
  #start = 0;
  #end = 0;

  append(chunk: Buffer): void {
    if (this.#end + chunk.length > this.#data.length) this.#makeRoom(chunk.length);
    chunk.copy(this.#data, this.#end);
    this.#end += chunk.length;
  }

  /** The next line without its line feed, or undefined if none is complete. */
  takeLine(): string | undefined {
    const at = this.#data.subarray(this.#start, this.#end).indexOf(0x0a);
    if (at < 0) return undefined;
    const line = this.#data.toString('utf8', this.#start, this.#start + at);
    this.#start += at + 1;
    return line;
  }

  /** A copy of the next `size` bytes, and drops `trailing` bytes behind them; undefined if they are not all there. */
  take(size: number, trailing: number): Buffer | undefined {
    if (this.#end - this.#start < size + trailing) return undefined;
    const bytes = Buffer.from(this.#data.subarray(this.#start, this.#start + size));
    this.#start += size + trailing;
    return bytes;
  }

  #makeRoom(needed: number): void {
    const live = this.#end - this.#start;
    const capacity = Math.max(64 * 1024, 2 ** Math.ceil(Math.log2(live + needed)));
    // Shrinks a buffer that grew for a large object.
    const target = capacity === this.#data.length ? this.#data : Buffer.allocUnsafe(capacity);
    this.#data.copy(target, 0, this.#start, this.#end);
    this.#data = target;
    this.#start = 0;
    this.#end = live;
  }
}
