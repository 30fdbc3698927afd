import type { ServerResponse } from 'node:http';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { StreamedResponse } from '../http/answer.ts';
import { JSON_TYPE } from '../http/request-body.ts';
import { UnsentFrames } from './unsent-frames.ts';

export interface WatchStreamsOptions {
  readonly clock: Clock;
  /** From 0 up to 1; spreads the ends of watches, so that clients do not all reconnect at once. */
  readonly random: () => number;
  /** Open watches of all clients together, and of one user. Default 5,000 and 2,000. */
  readonly maxWatches?: number;
  readonly maxWatchesOfUser?: number;
}

/** The destination of one watch. */
export interface WatchSink {
  /** Aborts when the watch must end: the client disconnected, its time is up, the server stops. */
  readonly signal: AbortSignal;
  /** Sends a line. If it returns a promise, nothing more may be sent before it resolves. */
  write(frame: Uint8Array): Promise<void> | undefined;
}

const MIN_WATCH_SECONDS = 1800;
const MAX_WATCH_SECONDS = 3600;
/** Seconds that a client may request. */
const MAX_TIMEOUT_SECONDS = 24 * 3600;
/** Milliseconds for which a client may read no sent byte. */
const STUCK_TIMEOUT_MS = 60_000;

interface OpenWatch {
  readonly response: ServerResponse;
  readonly watch: AbortController;
  readonly unsent: UnsentFrames;
}

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
   * Admits a watch, or refuses it with TooManyRequests. `feed` writes until it has sent everything or the signal aborts; it never
   * throws. `seconds` is the requested duration.
   */
  open(user: string, seconds: number | undefined, feed: (sink: WatchSink) => Promise<void>): StreamedResponse {
    this.#requireRoom(user);
    return { stream: (response) => this.#run(user, seconds, feed, response) };
  }

  /** Ends all watches, and every one that is opened later at once. */
  stop(): void {
    this.#stopped = true;
    for (const watch of this.#open) watch.abort();
  }

  #requireRoom(user: string): void {
    const { maxWatches = 5000, maxWatchesOfUser = 2000 } = this.#options;
    const own = this.#ofUser.get(user) ?? 0;
    // The last tenth is reserved for users with few watches, so that a few users with many watches never lock out all
    // others.
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
    const unsent = new UnsentFrames(this.#options.clock, STUCK_TIMEOUT_MS, () => response.destroy());
    // Not when the watch has ended: then the client still has to read its last lines.
    response.once('close', () => unsent.stop());
    this.#open.add(watch);
    this.#ofUser.set(user, (this.#ofUser.get(user) ?? 0) + 1);
    if (this.#stopped || response.destroyed) end();
    try {
      response.writeHead(200, { 'Content-Type': JSON_TYPE }).flushHeaders();
      // Small lines leave at once, and the loss of a peer is detected.
      response.socket?.setNoDelay(true).setKeepAlive(true, 30_000);
      await feed({ signal: watch.signal, write: (frame) => this.#write({ response, watch, unsent }, frame) });
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
    if (seconds !== undefined && seconds > 0) return Math.min(seconds, MAX_TIMEOUT_SECONDS);
    return MIN_WATCH_SECONDS + this.#options.random() * (MAX_WATCH_SECONDS - MIN_WATCH_SECONDS);
  }

  #write({ response, watch, unsent }: OpenWatch, frame: Uint8Array): Promise<void> | undefined {
    if (watch.signal.aborted || response.destroyed) return undefined;
    return response.write(frame, unsent.add()) ? undefined : this.#drained(response, watch.signal);
  }

  /** Resolves when the client has read all sent bytes. A client that reads nothing for too long is disconnected. */
  #drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        response.removeListener('drain', done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const cancel = this.#options.clock.schedule(STUCK_TIMEOUT_MS, () => {
        response.destroy();
        done();
      });
      response.once('drain', done);
      signal.addEventListener('abort', done);
    });
  }
}
