import type { Source, SourceContext } from '../../../src/controller/source.ts';
import { ShareLimiter } from '../../../src/foundation/concurrency/share-limiter.ts';
import { sleep } from '../../../src/foundation/time/backoff.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import { keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import { sameValue } from '../../../src/resource/object/same-value.ts';
import type { Verification } from '../../../src/rollout/wave/observation.ts';
import { type Probe, verifyByProbe } from './probe-target.ts';

/** Requests of all plans at a time, and those of one plan. */
const MAX_RUNNING = 64;
const MAX_RUNNING_OF_PLAN = 32;
/** Milliseconds in which the results of a plan are collected before it is observed again. */
const QUIET_MS = 200;

/** What is known of one address. */
interface Address {
  /** Where in the sequence each publication that it verifies was seen first: a probe that began before says nothing about it. */
  seen: ReadonlyMap<string, number>;
  /** Where in the sequence the probe of the result began. */
  begunAt: number;
  /** Running time of the result. */
  endedMs: number;
  result: Verification | undefined;
  /** True while a probe waits for its turn or for a response. */
  isPending: boolean;
}

interface PlanAddresses {
  readonly key: ObjectKey;
  readonly addresses: Map<string, Address>;
  readonly end: AbortController;
  /** True while it is about to be woken. */
  isWaking: boolean;
}

export interface PlanProbesOptions {
  readonly probe: Probe;
  readonly clock: Clock;
  readonly monotonic: () => number;
  readonly quietMs?: number | undefined;
}

/**
 * Probes the addresses of plans beside their reconciliations, which read the last results and wait for none: an address that does not respond
 * delays neither what users request nor, as plans take turns, the probes of other plans. Remembers one result for each address that verifies a
 * target now. Results are forgotten with the process.
 */
export class PlanProbes {
  readonly #options: PlanProbesOptions;
  readonly #plans = new Map<string, PlanAddresses>();
  readonly #limiter = new ShareLimiter({
    maxRunning: MAX_RUNNING,
    maxRunningOfShare: MAX_RUNNING_OF_PLAN,
    // Each address waits once, so that the targets of a plan are the limit.
    maxWaitingOfShare: Number.POSITIVE_INFINITY,
  });
  #sequence = 0;
  /** Of the controller, once it has started. */
  #context: Pick<SourceContext<ObjectKey>, 'enqueue' | 'track'> | undefined;
  #isStopped = false;

  constructor(options: PlanProbesOptions) {
    this.#options = options;
  }

  /** Wakes plans whose results have changed, and ends all probes when the controller stops. It is not idle while one is in progress. */
  readonly source: Source<ObjectKey> = {
    start: (context) => {
      this.#context = context;
      this.#isStopped = false;
      return () => {
        this.#context = undefined;
        // Reconciliations that still run begin no more.
        this.#isStopped = true;
        for (const { key } of [...this.#plans.values()]) this.forget(key);
      };
    },
  };

  /**
   * The results for the publications of a plan, with the addresses that verify them; undefined for one that was not probed yet. Begins the probes
   * that are due, those with the oldest results first. All other addresses of the plan are forgotten.
   */
  read(
    key: ObjectKey,
    urlOf: ReadonlyMap<string, string>,
    intervalMs: number,
  ): (publication: string) => Verification | undefined {
    const plan = this.#planOf(key);
    const publications = Map.groupBy(urlOf.keys(), (publication) => urlOf.get(publication) ?? '');
    for (const url of plan.addresses.keys()) if (!publications.has(url)) plan.addresses.delete(url);
    for (const [url, those] of publications) this.#see(plan, url, those);
    const now = this.#options.monotonic();
    const due = [...plan.addresses].filter(
      ([, { isPending, endedMs, seen, begunAt }]) =>
        !isPending && (now - endedMs >= intervalMs || [...seen.values()].some((since) => since > begunAt)),
    );
    if (!this.#isStopped)
      for (const [url, address] of due.sort(([, a], [, b]) => a.begunAt - b.begunAt)) this.#begin(plan, url, address);
    return (publication) => {
      const address = plan.addresses.get(urlOf.get(publication) ?? '');
      const since = address?.seen.get(publication);
      return address !== undefined && since !== undefined && address.begunAt > since ? address.result : undefined;
    };
  }

  /** Ends the probes of a plan, and forgets their results. */
  forget(key: ObjectKey): void {
    const plan = this.#plans.get(keyText(key));
    if (plan === undefined) return;
    this.#plans.delete(keyText(key));
    plan.addresses.clear();
    plan.end.abort();
  }

  #planOf(key: ObjectKey): PlanAddresses {
    const known = this.#plans.get(keyText(key));
    if (known !== undefined) return known;
    const plan = { key, addresses: new Map(), end: new AbortController(), isWaking: false };
    this.#plans.set(keyText(key), plan);
    return plan;
  }

  #see(plan: PlanAddresses, url: string, publications: readonly string[]): void {
    const known = plan.addresses.get(url);
    this.#sequence += 1;
    const seen = new Map(publications.map((one) => [one, known?.seen.get(one) ?? this.#sequence]));
    if (known !== undefined) known.seen = seen;
    else plan.addresses.set(url, { seen, begunAt: 0, endedMs: -Infinity, result: undefined, isPending: false });
  }

  #begin(plan: PlanAddresses, url: string, address: Address): void {
    address.isPending = true;
    // An address that is not wanted any more is not the one that is known now, even if it is wanted again.
    const isWanted = () => plan.addresses.get(url) === address;
    const probed = this.#limiter.run(keyText(plan.key), async () => {
      if (!isWanted()) return;
      this.#sequence += 1;
      const begunAt = this.#sequence;
      const result = await verifyByProbe(this.#options.probe, url, plan.end.signal);
      if (isWanted()) this.#note(plan, address, { result, begunAt });
    });
    this.#context?.track(() => probed);
  }

  #note(plan: PlanAddresses, address: Address, { result, begunAt }: Pick<Address, 'begunAt' | 'result'>): void {
    const isFirst = [...address.seen.values()].some((since) => since > address.begunAt);
    const isNews = isFirst || !sameValue(address.result, result);
    Object.assign(address, { result, begunAt, endedMs: this.#options.monotonic(), isPending: false });
    const context = this.#context;
    if (!isNews || plan.isWaking || context === undefined) return;
    const { clock, quietMs = QUIET_MS } = this.#options;
    plan.isWaking = true;
    context.track(async () => {
      await sleep(clock, quietMs, plan.end.signal);
      plan.isWaking = false;
      if (!plan.end.signal.aborted) context.enqueue(plan.key);
    });
  }
}
