/** A token that was replaced is used at most this long. */
const TOKEN_AGE_MS = 60_000;

/** Credentials that are read again after a minute, and on request. */
export class TokenCache<Credentials> {
  readonly #read: (signal: AbortSignal) => Promise<Credentials>;
  readonly #now: () => number;
  #last: { readonly value: Credentials; readonly readAt: number } | undefined;

  constructor(read: (signal: AbortSignal) => Promise<Credentials>, now: () => number = () => performance.now()) {
    this.#read = read;
    this.#now = now;
  }

  async read(signal: AbortSignal): Promise<Credentials> {
    if (this.#last !== undefined && this.#now() - this.#last.readAt < TOKEN_AGE_MS) return this.#last.value;
    const value = await this.#read(signal);
    this.#last = { value, readAt: this.#now() };
    return value;
  }

  /** Has it read again: the host does not accept what it returned. */
  forget(): void {
    this.#last = undefined;
  }
}
