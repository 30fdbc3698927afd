import type { IncomingMessage } from 'node:http';

/** Memory of a request whose body arrives, in addition to the buffered part of the body. */
const REQUEST_BYTES = 16 * 1024;
/** The first part of a body that is kept; it doubles as the body grows. */
const FIRST_BYTES = 4 * 1024;

/**
 * Bodies of requests that are not authenticated yet. Their number is not limited, but the bytes that they occupy are: beyond the limit the
 * oldest requests are disconnected, independent of their sender. A genuine message arrives within milliseconds, so an attacker must send the
 * whole limit in that time to displace it; slow senders displace only each other. There is no limit for each address: behind an ingress
 * all messages have the same one, and an attacker may have many.
 */
export class ArrivingBodies {
  readonly #maxBytes: number;
  /** In the order in which they began. */
  readonly #bodies = new Map<ArrivingBody, IncomingMessage>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Memory of all bodies. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Begins a body, of which at most `maxKeptBytes` are kept. It must be ended, whatever happens to the request. */
  begin(request: IncomingMessage, maxKeptBytes: number): ArrivingBody {
    const body = new ArrivingBody(maxKeptBytes, {
      hold: (bytes) => this.#hold(body, bytes),
      end: (bytes) => {
        if (this.#bodies.delete(body)) this.#bytes -= bytes + REQUEST_BYTES;
      },
    });
    this.#bodies.set(body, request);
    this.#hold(body, REQUEST_BYTES);
    return body;
  }

  #hold(body: ArrivingBody, bytes: number): void {
    // Data that arrives after the body was disconnected is dropped with it.
    if (!this.#bodies.has(body)) return;
    this.#bytes += bytes;
    for (const [oldest, request] of this.#bodies) {
      if (this.#bytes <= this.#maxBytes) break;
      oldest.end();
      request.destroy();
    }
  }
}

interface Account {
  readonly hold: (bytes: number) => void;
  readonly end: (bytes: number) => void;
}

/**
 * One body. It is buffered in one piece of memory: a sender could choose parts that are so small that each costs more than its
 * content.
 */
export class ArrivingBody {
  readonly #maxBytes: number;
  readonly #account: Account;
  #kept: Buffer | undefined = Buffer.alloc(0);
  #length = 0;
  #bufferedBytes = 0;

  constructor(maxBytes: number, account: Account) {
    this.#maxBytes = maxBytes;
    this.#account = account;
  }

  append(chunk: Buffer): void {
    if (this.#kept === undefined) return;
    const length = this.#length + chunk.length;
    if (length > this.#maxBytes) {
      this.#kept = undefined;
      this.#hold(0);
      return;
    }
    if (length > this.#kept.length) {
      const size = Math.min(this.#maxBytes, Math.max(length, 2 * this.#kept.length, FIRST_BYTES));
      const grown = Buffer.allocUnsafeSlow(size);
      this.#kept.copy(grown, 0, 0, this.#length);
      this.#kept = grown;
    }
    chunk.copy(this.#kept, this.#length);
    this.#length = length;
    // Last: this body itself may be what is given up.
    this.#hold(this.#kept.length);
  }

  /** The whole body; undefined if it was too long to keep. It counts no longer. */
  end(): Buffer | undefined {
    this.#account.end(this.#bufferedBytes);
    const kept = this.#kept?.subarray(0, this.#length);
    this.#kept = undefined;
    return kept;
  }

  #hold(bytes: number): void {
    const change = bytes - this.#bufferedBytes;
    if (change === 0) return;
    this.#bufferedBytes = bytes;
    this.#account.hold(change);
  }
}
