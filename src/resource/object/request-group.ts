import { clearTimeout, setTimeout } from 'node:timers';

/** Milliseconds that the requests of a group wait for the last of them, from the first one on. */
const MAX_WAIT_MS = 10_000;

/** One request of a group. */
export interface GroupMember {
  readonly group: RequestGroup;
  /** Resolves when each other request has come as far or has ended, or after some seconds; at once if that was so before. */
  arrive(): Promise<void>;
  /** To be called when the request has ended, however it did. */
  end(): void;
}

/**
 * Requests that one caller makes at the same time for the same reason, and that are carried out as one change where that is possible. Each
 * of them is decided on its own, and one that is refused does not affect the others.
 */
export class RequestGroup {
  readonly members: readonly GroupMember[];
  #missing: number;
  #timer: NodeJS.Timeout | undefined;
  readonly #complete = Promise.withResolvers<void>();

  constructor(size: number, maxWaitMs = MAX_WAIT_MS) {
    this.#missing = size;
    this.members = Array.from({ length: size }, () => this.#member(maxWaitMs));
  }

  #member(maxWaitMs: number): GroupMember {
    let isMissing = true;
    const end = () => {
      if (!isMissing) return;
      isMissing = false;
      this.#missing -= 1;
      if (this.#missing > 0) return;
      clearTimeout(this.#timer);
      this.#complete.resolve();
    };
    const arrive = () => {
      this.#timer ??= setTimeout(this.#complete.resolve, maxWaitMs);
      end();
      return this.#complete.promise;
    };
    return { group: this, arrive, end };
  }
}
