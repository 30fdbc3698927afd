import { SluiceError } from '../../foundation/sluice-error.ts';

export interface OpenRequestLimits {
  /** Requests of one user whose bodies arrive, that wait or that run. Open watches do not count. */
  readonly maxRequestsOfUser: number;
  /** Bytes of the bodies of open requests, as received and inflated. */
  readonly maxBytes: number;
  /** The same of one user, with large responses that are being sent to the user. */
  readonly maxBytesOfUser: number;
}

const MEBIBYTE = 1024 * 1024;

export const DEFAULT_OPEN_REQUESTS: OpenRequestLimits = {
  maxRequestsOfUser: 1000,
  maxBytes: 512 * MEBIBYTE,
  maxBytesOfUser: 128 * MEBIBYTE,
};

interface Open {
  requests: number;
  /** Of bodies and of responses. */
  bytes: number;
  responses: number;
}

/** One open request of a user. */
export interface OpenRequest {
  /** Accounts for bytes of its body. TooManyRequests if its user or all users exceed their share. */
  reserve(bytes: number): void;
  /**
   * Accounts for bytes of its response until the returned function is called, which may be after `close`. TooManyRequests if its user
   * has other requests and exceeds their share, unless the request must not be refused any more.
   */
  reserveResponse(bytes: number, options: { readonly mayRefuse: boolean }): () => void;
  close(): void;
}

/** Accounts for the memory of each user's open requests, so that a user who sends slowly or much uses only up their own share. */
export class OpenRequests {
  readonly #limits: OpenRequestLimits;
  readonly #ofUser = new Map<string, Open>();
  #bytes = 0;

  constructor(limits: OpenRequestLimits) {
    this.#limits = limits;
  }

  /** Bytes of all bodies. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Opens a request. TooManyRequests if its user has too many. */
  open(user: string): OpenRequest {
    const { maxRequestsOfUser, maxBytes, maxBytesOfUser } = this.#limits;
    const own = this.#ofUser.get(user) ?? { requests: 0, bytes: 0, responses: 0 };
    if (own.requests >= maxRequestsOfUser) throw tooMany(`the user has ${maxRequestsOfUser} open requests`);
    own.requests += 1;
    this.#ofUser.set(user, own);
    let held = 0;
    return {
      reserve: (bytes) => {
        if (own.bytes + bytes > maxBytesOfUser)
          throw tooMany(`the open requests of the user have ${maxBytesOfUser} bytes`);
        if (this.#bytes + bytes > maxBytes) throw tooMany(`the open requests of all users have ${maxBytes} bytes`);
        own.bytes += bytes;
        this.#bytes += bytes;
        held += bytes;
      },
      close: () => {
        own.requests -= 1;
        own.bytes -= held;
        this.#bytes -= held;
        held = 0;
        this.#forget(user, own);
      },
      reserveResponse: (bytes, { mayRefuse }) => {
        // A user's only response is sent whatever its size, so that a large object can be read at all.
        if (mayRefuse && own.responses > 0 && own.bytes + bytes > maxBytesOfUser)
          throw tooMany(`the responses that are being sent to the user have ${maxBytesOfUser} bytes`);
        own.responses += 1;
        own.bytes += bytes;
        return () => {
          own.responses -= 1;
          own.bytes -= bytes;
          this.#forget(user, own);
        };
      },
    };
  }

  #forget(user: string, own: Open): void {
    if (own.requests === 0 && own.responses === 0 && this.#ofUser.get(user) === own) this.#ofUser.delete(user);
  }
}

function tooMany(why: string): SluiceError {
  return new SluiceError('TooManyRequests', `too many requests, please try again later: ${why}`);
}
