import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';

interface OpenReviewLimits {
  /** Of callers with a client certificate that TLS has verified, and as many of all others. */
  readonly maxReviews: number;
  /** Characters of the bodies that are read and being decided, of either. */
  readonly maxCharacters: number;
  /** Milliseconds for which a body may arrive where others wait. */
  readonly slowBodyMs: number;
}

const DEFAULT_LIMITS: OpenReviewLimits = {
  maxReviews: 50,
  // Of the objects that are parsed, the memory is several times this.
  maxCharacters: 16 * 1024 * 1024,
  slowBodyMs: 1000,
};

/** One review, from the headers of its request until its response. */
interface OpenReview {
  /** Its body is read, and has so many characters. TooManyRequests if all that are being decided have too many. */
  decide(characters: number): void;
  close(): void;
}

interface Entry {
  readonly request: IncomingMessage;
  readonly sinceMs: number;
  isArriving: boolean;
}

/**
 * Limits the reviews in progress before anything is spent on one, since any client that reaches the port may send them. A kube-apiserver
 * repeats a review that was refused with TooManyRequests. Clients without a certificate cannot keep out a kube-apiserver that has one, and
 * slow senders displace only each other.
 */
export class OpenReviews {
  readonly #clock: Clock;
  readonly #limits: OpenReviewLimits;
  readonly #certified = new Share();
  readonly #others = new Share();

  constructor(clock: Clock, limits: Partial<OpenReviewLimits> = {}) {
    this.#clock = clock;
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
  }

  /** Opens a review, which must be closed. TooManyRequests if its caller's share is used up. */
  open(request: IncomingMessage): OpenReview {
    const { maxReviews, maxCharacters, slowBodyMs } = this.#limits;
    const { socket } = request;
    const share = socket instanceof TLSSocket && socket.authorized ? this.#certified : this.#others;
    const now = this.#clock.now();
    if (share.reviews.size >= maxReviews) share.dropSlow(now - slowBodyMs);
    if (share.reviews.size >= maxReviews) throw tooMany(`${maxReviews} reviews are in progress`);
    const entry: Entry = { request, sinceMs: now, isArriving: true };
    share.reviews.add(entry);
    let held = 0;
    return {
      decide(characters) {
        entry.isArriving = false;
        // One at a time is decided whatever its size.
        if (share.characters > 0 && share.characters + characters > maxCharacters)
          throw tooMany(`the reviews in progress have ${maxCharacters} characters`);
        held += characters;
        share.characters += characters;
      },
      close() {
        share.reviews.delete(entry);
        share.characters -= held;
        held = 0;
      },
    };
  }
}

/** The reviews of one group of callers. */
class Share {
  /** In the order in which they were opened. */
  readonly reviews = new Set<Entry>();
  characters = 0;

  /** Disconnects the oldest request whose body has been arriving since before the time. */
  dropSlow(beforeMs: number): void {
    for (const entry of this.reviews) {
      if (entry.sinceMs > beforeMs) return;
      if (!entry.isArriving) continue;
      this.reviews.delete(entry);
      entry.request.destroy();
      return;
    }
  }
}

function tooMany(why: string): SluiceError {
  return new SluiceError('TooManyRequests', `too many requests, please try again later: ${why}`);
}
