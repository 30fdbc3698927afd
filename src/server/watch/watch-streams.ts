import type { ServerResponse } from 'node:http';
import type { Clock } from '../../foundation/clock.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { StreamedAnswer } from '../http/answer.ts';
import { JSON_TYPE } from '../http/request-body.ts';

export interface WatchStreamsOptions {
  readonly clock: Clock;
  /** From 0 up to 1; spreads the ends of watches, so that clients do not all come back at once. */
  readonly random: () => number;
  /** Open watches of all clients together, and of one user. Default 5,000 and 2,000. */
  readonly maxWatches?: number;
  readonly maxWatchesOfUser?: number;
}

/** Where one watch writes to. */
export interface WatchSink {
  /** Aborts when the watch is to end: the client left, its time is up, the server stops. */
  readonly signal: AbortSignal;
  /** Sends a line. If a promise comes back, nothing more may be sent before it resolves. */
  write(frame: Uint8Array): Promise<void> | undefined;
}

const SHORTEST_WATCH = 1800;
const LONGEST_WATCH = 3600;
/** Seconds that a client may ask for. */
const MAX_TIMEOUT = 24 * 3600;
/** Milliseconds that a client may take nothing of what was sent to it. */
const STUCK_AFTER = 60_000;

/** The open watches: how many there may be, how long they last, and how fast they are written. */
export class WatchStreams {
  readonly #options: WatchStreamsOptions;
  readonly #open = new Set<AbortController>();
  readonly #ofUser = new Map<string, number>();
  #stopped = false;

  constructor(options: WatchStreamsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * Makes room for a watch, or refuses it with TooManyRequests. `feed` writes until it has nothing more to say or the signal
   * aborts; it never throws. `seconds` is what the client asked for.
   */
  open(user: string, seconds: number | undefined, feed: (sink: WatchSink) => Promise<void>): StreamedAnswer {
    this.#checkRoom(user);
    return { stream: (response) => this.#run(user, seconds, feed, response) };
  }

  /** Ends all watches, and every one that is opened later at once. */
  stop(): void {
    this.#stopped = true;
    for (const watch of this.#open) watch.abort();
  }

  #checkRoom(user: string): void {
    const { maxWatches = 5000, maxWatchesOfUser = 2000 } = this.#options;
    const own = this.#ofUser.get(user) ?? 0;
    // The last tenth is for users with few watches, so that a few users with many never lock out all others.
    const hasMany = own >= maxWatches / 100;
    const full = this.#open.size >= (hasMany ? 0.9 * maxWatches : maxWatches);
    if (!full && own < maxWatchesOfUser) return;
    const whose = full ? 'the server has' : 'the user has';
    throw new SluiceError('TooManyRequests', `${whose} too many open watches, please try again later`);
  }

  async #run(
    user: string,
    seconds: number | undefined,
    feed: (sink: WatchSink) => Promise<void>,
    response: ServerResponse,
  ): Promise<void> {
    const watch = new AbortController();
    const end = () => watch.abort();
    const cancelTimer = this.#options.clock.schedule(1000 * this.#lifetime(seconds), end);
    response.once('close', end);
    this.#open.add(watch);
    this.#ofUser.set(user, (this.#ofUser.get(user) ?? 0) + 1);
    if (this.#stopped || response.destroyed) end();
    try {
      response.writeHead(200, { 'Content-Type': JSON_TYPE }).flushHeaders();
      // Small lines at once; and a peer that vanished without a word is noticed.
      response.socket?.setNoDelay(true).setKeepAlive(true, 30_000);
      await feed({ signal: watch.signal, write: (frame) => this.#write(response, watch, frame) });
    } finally {
      cancelTimer();
      response.removeListener('close', end);
      this.#open.delete(watch);
      const left = (this.#ofUser.get(user) ?? 1) - 1;
      if (left === 0) this.#ofUser.delete(user);
      else this.#ofUser.set(user, left);
      response.end();
    }
  }

  #lifetime(seconds: number | undefined): number {
    if (seconds !== undefined && seconds > 0) return Math.min(seconds, MAX_TIMEOUT);
    return SHORTEST_WATCH + this.#options.random() * (LONGEST_WATCH - SHORTEST_WATCH);
  }

  #write(response: ServerResponse, watch: AbortController, frame: Uint8Array): Promise<void> | undefined {
    if (watch.signal.aborted || response.destroyed) return undefined;
    return response.write(frame) ? undefined : this.#drained(response, watch.signal);
  }

  /** Until the client has taken what was sent. One that takes nothing for long is cut off. */
  #drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        response.removeListener('drain', done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const cancel = this.#options.clock.schedule(STUCK_AFTER, () => {
        response.destroy();
        done();
      });
      response.once('drain', done);
      signal.addEventListener('abort', done);
    });
  }
}
