import { isIPv6 } from 'node:net';
import { mapLimited } from '../../foundation/concurrency/map-limited.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { keyText, type ObjectKey } from '../../resource/object/object.ts';

/** Messages of one address that prove nothing: at once, and per second after that. */
const MAX_UNPROVEN_AT_ONCE = 200;
const MAX_UNPROVEN_PER_SECOND = 20;
const MAX_ADDRESSES = 10_000;
/** Reads in progress. A genuine message needs some milliseconds. */
const MAX_READS = 8;
/** Milliseconds for which messages are collected that share their reads. */
const BATCH_MS = 250;

export interface SecretReadsOptions {
  readonly clock: Clock;
  /** Reads the secrets of a repository's webhook; in a cluster from the kube-apiserver. */
  readonly read: (repository: ObjectKey) => Promise<readonly string[]>;
  /** From memory. */
  readonly isRegistered: (repository: ObjectKey) => boolean;
}

type Outcome = PromiseSettledResult<readonly string[]>;

/** Messages that wait for the same reads. */
interface Batch {
  readonly repositories: Map<string, ObjectKey>;
  readonly outcomes: Promise<ReadonlyMap<string, Outcome>>;
}

/** What an address may still send. */
interface Budget {
  messages: number;
  atMs: number;
}

/**
 * Reads the secrets for messages of webhooks, whose senders have no credentials yet, and bounds what that costs the cluster. An address
 * has a budget of messages that turn out to prove nothing; a genuine one costs nothing. Messages beyond the budget, or beyond the reads
 * in progress, are not refused, since behind an ingress genuine ones come from the same address: they wait a moment, and share one read
 * for each registered repository. The results of a batch arrive together, so that the time shows nothing about a repository.
 */
export class SecretReads {
  readonly #options: SecretReadsOptions;
  readonly #budgets = new LruCache<string, Budget>({ maxEntries: MAX_ADDRESSES });
  #running = 0;
  #batch: Batch | undefined;
  #lastBatch: Promise<unknown> = Promise.resolve();

  constructor(options: SecretReadsOptions) {
    this.#options = options;
  }

  /** The secrets for a message of an address. Rejects as `read` does. */
  async secretsFor(repository: ObjectKey, address: string): Promise<readonly string[]> {
    const budget = this.#budgetOf(address);
    if (budget.messages < 1 || this.#running >= MAX_READS) return await this.#inBatch(repository);
    budget.messages -= 1;
    this.#running += 1;
    try {
      return await this.#options.read(repository);
    } finally {
      this.#running -= 1;
    }
  }

  /** The message was genuine. */
  refund(address: string): void {
    const budget = this.#budgetOf(address);
    budget.messages = Math.min(MAX_UNPROVEN_AT_ONCE, budget.messages + 1);
  }

  async #inBatch(repository: ObjectKey): Promise<readonly string[]> {
    this.#batch ??= this.#beginBatch();
    const { repositories, outcomes } = this.#batch;
    const id = keyText(repository);
    if (this.#options.isRegistered(repository)) repositories.set(id, repository);
    const outcome = (await outcomes).get(id);
    if (outcome?.status === 'rejected') throw outcome.reason;
    return outcome?.value ?? [];
  }

  #beginBatch(): Batch {
    const repositories = new Map<string, ObjectKey>();
    const { promise: collected, resolve: endCollection } = Promise.withResolvers<void>();
    const previous = this.#lastBatch;
    const outcomes = collected
      .then(() => previous)
      .then(() => {
        this.#batch = undefined;
        return this.#readAll(repositories);
      });
    this.#lastBatch = outcomes;
    this.#options.clock.schedule(BATCH_MS, endCollection);
    return { repositories, outcomes };
  }

  async #readAll(repositories: ReadonlyMap<string, ObjectKey>): Promise<ReadonlyMap<string, Outcome>> {
    const found = await mapLimited([...repositories], MAX_READS, async ([id, key]) => {
      const [outcome] = await Promise.allSettled([this.#options.read(key)]);
      return [id, outcome] as const;
    });
    return new Map(found);
  }

  #budgetOf(address: string): Budget {
    const sender = senderOf(address);
    const nowMs = this.#options.clock.now();
    const budget = this.#budgets.get(sender) ?? { messages: MAX_UNPROVEN_AT_ONCE, atMs: nowMs };
    const earned = (Math.max(0, nowMs - budget.atMs) / 1000) * MAX_UNPROVEN_PER_SECOND;
    budget.messages = Math.min(MAX_UNPROVEN_AT_ONCE, budget.messages + earned);
    budget.atMs = nowMs;
    this.#budgets.set(sender, budget);
    return budget;
  }
}

/** One sender may have all addresses of an IPv6 network of 64 bits. */
function senderOf(address: string): string {
  if (!isIPv6(address) || address.startsWith('::ffff:')) return address;
  const [head = '', tail] = address.split('::');
  const left = head.split(':').filter((group) => group !== '');
  const right = (tail ?? '').split(':').filter((group) => group !== '');
  const zeros = tail === undefined ? [] : Array<string>(8 - left.length - right.length).fill('0');
  return [...left, ...zeros, ...right].slice(0, 4).join(':');
}
