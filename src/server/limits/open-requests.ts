import { SluiceError } from '../../foundation/sluice-error.ts';

export interface OpenRequestLimits {
  /** Requests of one user that are open: their bodies arrive, they wait or they are worked on. Watches that run do not count. */
  readonly requestsOfUser: number;
  /** Bytes of bodies that are held for open requests, as they came and inflated. */
  readonly bytes: number;
  readonly bytesOfUser: number;
}

const MEBIBYTE = 1024 * 1024;

export const DEFAULT_OPEN_REQUESTS: OpenRequestLimits = {
  requestsOfUser: 1000,
  bytes: 512 * MEBIBYTE,
  bytesOfUser: 128 * MEBIBYTE,
};

interface Open {
  requests: number;
  bytes: number;
}

/** One open request of a user. */
export interface OpenRequest {
  /** Accounts for bytes that are held for it. TooManyRequests if its user or all users hold too many. */
  hold(bytes: number): void;
  close(): void;
}

/** What the open requests of each user hold before a place is taken: whoever sends slowly or much only takes from their own share. */
export class OpenRequests {
  readonly #limits: OpenRequestLimits;
  readonly #ofUser = new Map<string, Open>();
  #bytes = 0;

  constructor(limits: OpenRequestLimits) {
    this.#limits = limits;
  }

  /** Bytes of bodies that are held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Opens a request. TooManyRequests if its user has too many. */
  open(user: string): OpenRequest {
    const { requestsOfUser, bytes: maxBytes, bytesOfUser } = this.#limits;
    const own = this.#ofUser.get(user) ?? { requests: 0, bytes: 0 };
    if (own.requests >= requestsOfUser) throw tooMany(`the user has ${requestsOfUser} open requests`);
    own.requests += 1;
    this.#ofUser.set(user, own);
    let held = 0;
    return {
      hold: (bytes) => {
        if (own.bytes + bytes > bytesOfUser) throw tooMany(`the open requests of the user have ${bytesOfUser} bytes`);
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
        if (own.requests === 0) this.#ofUser.delete(user);
      },
    };
  }
}

function tooMany(why: string): SluiceError {
  return new SluiceError('TooManyRequests', `too many requests, please try again later: ${why}`);
}
