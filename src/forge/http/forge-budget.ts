import { Limiter } from '../../foundation/concurrency/limiter.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { sleep } from '../../foundation/time/backoff.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { measurement } from '../../foundation/time/measurement.ts';
import type { BudgetUsage, Rate } from '../budget-usage.ts';
import type { ForgeErrorDetails } from '../forge.ts';
import type { ForgeResponse, Method } from './forge-response.ts';
import { isRateLimit, rateOf, retryAfter, UNKNOWN_LIMIT_MS } from './rate-limit.ts';

/** As octokit; GitHub permits 100. */
const MAX_CONCURRENT = 10;
/** A request that hangs must not keep the others from being sent: from then on it does not count. */
const SLOW_MS = 2000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** A caller waits this long for its turn; for a longer time it gets the time of the next attempt. */
const MAX_WAIT_MS = 5000;
const MAX_PAUSE_MS = HOUR_MS;

/** Maximum numbers of requests that create content. */
export interface ContentLimits {
  readonly perMinute: number;
  readonly perHour: number;
  /** Whether a request is one of them. */
  counts(method: Method, url: string): boolean;
}

export interface ForgeBudgetOptions {
  readonly clock: Clock;
  /** For metrics. */
  readonly host: string;
  /** What has the credentials, for messages and metrics. */
  readonly name: string;
  /** Whose limit it is, for metrics. */
  readonly account: string;
  /** Default: no limits. */
  readonly content?: ContentLimits;
}

export interface BudgetedRequest {
  /** For messages. */
  readonly what: string;
  readonly method: Method;
  readonly url: string;
  readonly signal: AbortSignal;
}

export interface ForgeRequestRecord {
  readonly host: string;
  readonly name: string;
  readonly account: string;
  readonly outcome: 'answered' | 'not_modified' | 'limited' | 'delayed' | 'failed';
  readonly usage: () => BudgetUsage;
}

/** Requests to hosts with pull requests; `delayed` ones were not sent. */
export const forgeRequests = measurement<ForgeRequestRecord>('sluice:forge-request');

/**
 * The requests of one account of a host. Once the host reports a limit, all of them pause until it ends: no request is sent, and each is
 * rejected with the time that is left. After a pause a single request finds out whether it has ended, before the others follow, and a limit without a
 * time doubles the pause. Requests that create content are delayed so that the host need not refuse them.
 */
export class ForgeBudget {
  readonly #options: ForgeBudgetOptions;
  readonly #limiter: Limiter;
  #pausedUntil = 0;
  /** Pauses since the last response that reports no limit. */
  #pauses = 0;
  #probe: Promise<void> | undefined;
  #rate: Rate | undefined;
  /** Times of the requests of the last hour that create content, oldest first. */
  readonly #created: number[] = [];

  constructor(options: ForgeBudgetOptions) {
    this.#options = options;
    this.#limiter = new Limiter({ maxRunning: MAX_CONCURRENT, slowAfterMs: SLOW_MS, clock: options.clock });
  }

  /** Sends a request when the budget permits it. Rejects with TooManyRequests if it does not within some seconds. */
  async run(request: BudgetedRequest, send: () => Promise<ForgeResponse>): Promise<ForgeResponse> {
    try {
      this.#checkPause(request);
      await this.#waitForTurn(request);
    } catch (error) {
      this.#publish('delayed');
      throw error;
    }
    const release = await this.#limiter.acquire(request.signal);
    try {
      return await this.#sendUnlessPaused(request, send);
    } finally {
      release();
    }
  }

  get usage(): BudgetUsage {
    const { clock } = this.#options;
    const now = clock.monotonic();
    this.#dropOld(now);
    const minute = this.#created.filter((at) => now - at < MINUTE_MS).length;
    const pausedMs = Math.max(0, this.#pausedUntil - now);
    return { rate: this.#rate, content: { minute, hour: this.#created.length }, pausedMs };
  }

  async #sendUnlessPaused(request: BudgetedRequest, send: () => Promise<ForgeResponse>): Promise<ForgeResponse> {
    // Those that waited for others to end must not follow them into the limit.
    while (this.#probe !== undefined) await this.#probe;
    request.signal.throwIfAborted();
    if (this.#isPaused()) this.#publish('delayed');
    this.#checkPause(request);
    const probed = this.#pauses === 0 ? undefined : Promise.withResolvers<void>();
    this.#probe = probed?.promise;
    try {
      const response = await send();
      this.#note(response);
      return response;
    } catch (error) {
      this.#publish('failed');
      throw error;
    } finally {
      if (probed !== undefined) {
        this.#probe = undefined;
        probed.resolve();
      }
    }
  }

  #note(response: ForgeResponse): void {
    const { headers, status } = response;
    const now = this.#options.clock.monotonic();
    this.#rate = rateOf(headers) ?? this.#rate;
    const isLimit = isRateLimit(response);
    const required = retryAfter(headers, this.#options.clock.now());
    if (isLimit) {
      // Requests that were sent before the pause report the same limit.
      if (!this.#isPaused()) this.#pauses += 1;
      const pauseMs = required ?? Math.min(UNKNOWN_LIMIT_MS * 2 ** (this.#pauses - 1), MAX_PAUSE_MS);
      this.#pausedUntil = Math.max(this.#pausedUntil, now + pauseMs);
    } else if (this.#rate?.remaining === 0 && required !== undefined) {
      this.#pausedUntil = Math.max(this.#pausedUntil, now + required);
    } else if (!this.#isPaused()) this.#pauses = 0;
    this.#publish(isLimit ? 'limited' : status === 304 ? 'not_modified' : 'answered');
  }

  #isPaused(): boolean {
    return this.#options.clock.monotonic() < this.#pausedUntil;
  }

  #checkPause({ what }: BudgetedRequest): void {
    const { clock, name } = this.#options;
    if (!this.#isPaused()) return;
    const retryAfterMs = this.#pausedUntil - clock.monotonic();
    throw delayed(`${what}: not sent, as the host limits ${name}`, retryAfterMs);
  }

  /** Waits until one more request may create content, and counts it; not for others. */
  async #waitForTurn({ what, method, url, signal }: BudgetedRequest): Promise<void> {
    const { clock, content, name } = this.#options;
    if (content?.counts(method, url) !== true) return;
    for (let waited = 0; ; ) {
      const now = clock.monotonic();
      const waitMs = this.#untilTurn(content, now);
      if (waitMs === 0) {
        this.#created.push(now);
        return;
      }
      if (waited + waitMs > MAX_WAIT_MS) {
        const limit = `${name} may create content ${content.perMinute} times in a minute and ${content.perHour} times in an hour`;
        throw delayed(`${what}: not sent, as ${limit}`, waitMs);
      }
      await sleep(clock, waitMs, signal);
      signal.throwIfAborted();
      waited += waitMs;
    }
  }

  #untilTurn({ perMinute, perHour }: ContentLimits, now: number): number {
    this.#dropOld(now);
    const minute = this.#created.at(-perMinute);
    const hour = this.#created.at(-perHour);
    return Math.max(
      minute === undefined ? 0 : minute + MINUTE_MS - now,
      hour === undefined ? 0 : hour + HOUR_MS - now,
      0,
    );
  }

  #dropOld(now: number): void {
    const from = this.#created.findIndex((at) => now - at < HOUR_MS);
    this.#created.splice(0, from === -1 ? this.#created.length : from);
  }

  #publish(outcome: ForgeRequestRecord['outcome']): void {
    const { host, name, account } = this.#options;
    forgeRequests.publish({ host, name, account, outcome, usage: () => this.usage });
  }
}

function delayed(message: string, retryAfterMs: number): SluiceError<ForgeErrorDetails> {
  const text = `${message}; it is repeated in ${Math.ceil(retryAfterMs / 1000)} s`;
  return new SluiceError('TooManyRequests', text, { details: { retryAfterMs } });
}
