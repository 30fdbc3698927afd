import { Limiter } from '../../foundation/concurrency/limiter.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { sleep } from '../../foundation/time/backoff.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { measurement } from '../../foundation/time/measurement.ts';
import type { BudgetUsage, LimitedResource, Rate } from '../budget-usage.ts';
import type { ForgeErrorDetails } from '../forge.ts';
import type { ForgeResponse, Method } from './forge-response.ts';
import { LimitPause } from './limit-pause.ts';
import { isRateLimit, isSecondaryLimit, rateOf, resourceOf, retryAfter, untilReset } from './rate-limit.ts';

/** As octokit; GitHub permits 100. */
const MAX_CONCURRENT = 10;
/** A request that hangs must not keep the others from being sent: from then on it does not count. */
const SLOW_MS = 2000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** A caller waits this long for its turn; for a longer time it gets the time of the next attempt. */
const MAX_WAIT_MS = 5000;

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

/** Of one resource. */
interface Primary {
  readonly pause: LimitPause;
  rate: Rate | undefined;
}

/**
 * The requests of one account of a host. Once the host reports a limit, those that it counts pause until it ends: the primary limit is of one
 * resource, and others are of all requests. No request is sent, and each is rejected with the time that is left. Requests that create content
 * are delayed so that the host need not refuse them.
 */
export class ForgeBudget {
  readonly #options: ForgeBudgetOptions;
  readonly #limiter: Limiter;
  readonly #all = new LimitPause();
  readonly #primary = new Map<LimitedResource, Primary>();
  /** Times of the requests of the last hour that create content, oldest first. */
  readonly #created: number[] = [];

  constructor(options: ForgeBudgetOptions) {
    this.#options = options;
    this.#limiter = new Limiter({ maxRunning: MAX_CONCURRENT, slowAfterMs: SLOW_MS, clock: options.clock });
  }

  /** Sends a request when the budget permits it. Rejects with TooManyRequests if it does not within some seconds. */
  async run(request: BudgetedRequest, send: () => Promise<ForgeResponse>): Promise<ForgeResponse> {
    let giveBack: () => void;
    try {
      this.#checkPause(request);
      giveBack = await this.#waitForTurn(request);
    } catch (error) {
      this.#publish('delayed');
      throw error;
    }
    let isSent = false;
    const sendOnce = () => {
      isSent = true;
      return send();
    };
    try {
      const release = await this.#limiter.acquire(request.signal);
      try {
        return await this.#sendUnlessPaused(request, sendOnce);
      } finally {
        release();
      }
    } finally {
      if (!isSent) giveBack();
    }
  }

  get usage(): BudgetUsage {
    const now = this.#options.clock.monotonic();
    this.#dropOld(now);
    const minute = this.#created.filter((at) => now - at < MINUTE_MS).length;
    const resources = [...this.#primary].map(([resource, { rate, pause }]) => {
      return { resource, rate, pausedMs: Math.max(pause.leftMs(now), this.#all.leftMs(now)) };
    });
    return { resources, content: { minute, hour: this.#created.length } };
  }

  async #sendUnlessPaused(request: BudgetedRequest, send: () => Promise<ForgeResponse>): Promise<ForgeResponse> {
    const limits = this.#limitsOf(request);
    // Those that waited for others to end must not follow them into the limit.
    for (;;) {
      const probe = limits.find((limit) => limit.probe !== undefined)?.probe;
      if (probe === undefined) break;
      await probe;
    }
    request.signal.throwIfAborted();
    if (this.#pausedMs(request) > 0) this.#publish('delayed');
    this.#checkPause(request);
    const ends = limits.map((limit) => limit.start());
    try {
      const response = await send();
      this.#note(request, response);
      return response;
    } catch (error) {
      this.#publish('failed');
      throw error;
    } finally {
      for (const end of ends) end();
    }
  }

  #note({ url }: BudgetedRequest, response: ForgeResponse): void {
    const { headers, status } = response;
    const { clock } = this.#options;
    const now = clock.monotonic();
    const primary = this.#primaryOf(url);
    primary.rate = rateOf(headers) ?? primary.rate;
    const isLimit = isRateLimit(response);
    const isSecondary = isLimit && isSecondaryLimit(response);
    const resetMs = untilReset(headers, clock.now());
    if (isSecondary) this.#all.refuse(now, retryAfter(headers, clock.now()));
    if (!isLimit) this.#all.accept(now);
    if (resetMs === undefined) {
      if (!isLimit) primary.pause.accept(now);
    } else if (isLimit && !isSecondary) primary.pause.refuse(now, resetMs);
    else primary.pause.lengthen(now, resetMs);
    this.#publish(isLimit ? 'limited' : status === 304 ? 'not_modified' : 'answered');
  }

  #primaryOf(url: string): Primary {
    const resource = resourceOf(url);
    const known = this.#primary.get(resource);
    if (known !== undefined) return known;
    const created: Primary = { pause: new LimitPause(), rate: undefined };
    this.#primary.set(resource, created);
    return created;
  }

  #limitsOf({ url }: BudgetedRequest): readonly LimitPause[] {
    return [this.#all, this.#primaryOf(url).pause];
  }

  #pausedMs(request: BudgetedRequest): number {
    const now = this.#options.clock.monotonic();
    return Math.max(...this.#limitsOf(request).map((limit) => limit.leftMs(now)));
  }

  #checkPause(request: BudgetedRequest): void {
    const retryAfterMs = this.#pausedMs(request);
    if (retryAfterMs > 0)
      throw delayed(`${request.what}: not sent, as the host limits ${this.#options.name}`, retryAfterMs);
  }

  /** Waits until one more request may create content, and counts it; not for others. Returns what to call if it is not sent after all. */
  async #waitForTurn({ what, method, url, signal }: BudgetedRequest): Promise<() => void> {
    const { clock, content, name } = this.#options;
    if (content?.counts(method, url) !== true) return () => undefined;
    for (let waited = 0; ; ) {
      const now = clock.monotonic();
      const waitMs = this.#untilTurn(content, now);
      if (waitMs === 0) {
        this.#created.push(now);
        return () => this.#giveBack(now);
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

  #giveBack(at: number): void {
    const found = this.#created.indexOf(at);
    if (found !== -1) this.#created.splice(found, 1);
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
