import { randomBytes } from 'node:crypto';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import type { KubernetesObject, Stored } from '../../object/object.ts';
import type { ListOptions, ListResult } from '../storage.ts';

/** The source of pages: the entries of one state, in order, and the position of the next page. */
interface Snapshot<Entry> {
  readonly entries: readonly Entry[];
  /** The caller of the next page may have rights in this namespace alone; undefined for all. */
  readonly namespace: string | undefined;
  readonly resourceVersion: string;
  readonly createdAt: number;
}

/** Milliseconds for which the next page of a list can be requested. */
const LIFETIME_MS = 5 * 60_000;
const MAX_SNAPSHOTS = 64;

/**
 * Splits lists into pages of one state. The state is kept as references for five minutes; after that a client must list
 * again, which Kubernetes clients do by themselves.
 */
export class ListPages<Entry, T extends KubernetesObject> {
  readonly #clock: Clock;
  readonly #objectOf: (entry: Entry) => Stored<T>;
  readonly #snapshots = new Map<number, Snapshot<Entry>>();
  /** Keeps the tokens of another kind, or of an earlier process, from being taken for one's own. */
  readonly #instance = randomBytes(6).toString('hex');
  #lastId = 0;

  constructor(clock: Clock, objectOf: (entry: Entry) => Stored<T>) {
    this.#clock = clock;
    this.#objectOf = objectOf;
  }

  /**
   * Returns one page. `find` returns the current entries for a first page; `matches` tests which of them are selected, undefined
   * for all.
   */
  list(
    options: ListOptions,
    resourceVersion: string,
    find: () => readonly Entry[],
    matches: ((object: Stored<T>) => boolean) | undefined,
  ): ListResult<T> {
    const token =
      options.continue === undefined || options.continue === '' ? undefined : this.#readToken(options.continue);
    const snapshot =
      token === undefined
        ? { entries: find(), namespace: options.namespace, resourceVersion, createdAt: this.#clock.monotonic() }
        : this.#kept(token.snapshot);
    // Tokens can be guessed, and access was checked for the namespace of this request.
    if (snapshot.namespace !== options.namespace)
      throw new SluiceError('BadRequest', 'continue key is not valid: it belongs to a list of another namespace');
    const limit = options.limit === undefined || options.limit <= 0 ? Number.POSITIVE_INFINITY : options.limit;
    const items: Stored<T>[] = [];
    let at = token?.position ?? 0;
    let more = false;
    for (; at < snapshot.entries.length; at += 1) {
      const object = this.#objectOf(snapshot.entries[at] as Entry);
      if (matches !== undefined && !matches(object)) continue;
      if (items.length >= limit) {
        more = true;
        break;
      }
      items.push(object);
    }
    const result = { items: Object.freeze(items), resourceVersion: snapshot.resourceVersion };
    if (!more) return result;
    const id = token?.snapshot ?? this.#keep(snapshot);
    return {
      ...result,
      continue: Buffer.from(`${this.#instance}:${id}:${at}`).toString('base64url'),
      ...(matches === undefined ? { remainingItemCount: snapshot.entries.length - at } : {}),
    };
  }

  #keep(snapshot: Snapshot<Entry>): number {
    for (const [id, { createdAt }] of this.#snapshots) {
      if (this.#snapshots.size < MAX_SNAPSHOTS && this.#clock.monotonic() - createdAt < LIFETIME_MS) break;
      this.#snapshots.delete(id);
    }
    this.#lastId += 1;
    this.#snapshots.set(this.#lastId, snapshot);
    return this.#lastId;
  }

  #kept(id: number): Snapshot<Entry> {
    const snapshot = this.#snapshots.get(id);
    if (snapshot !== undefined && this.#clock.monotonic() - snapshot.createdAt < LIFETIME_MS) return snapshot;
    throw tooOld();
  }

  #readToken(text: string): Token {
    const [, instance, snapshot, position] = TOKEN.exec(Buffer.from(text, 'base64url').toString('latin1')) ?? [];
    if (instance === undefined)
      throw new SluiceError('BadRequest', 'continue key is not valid: it must be the one of a list answer');
    if (instance !== this.#instance) throw tooOld();
    return { snapshot: Number(snapshot), position: Number(position) };
  }
}

const TOKEN = /^([0-9a-f]{12}):(\d{1,15}):(\d{1,15})$/;

interface Token {
  readonly snapshot: number;
  readonly position: number;
}

function tooOld(): SluiceError {
  return new SluiceError(
    'Expired',
    'The provided continue parameter is too old to display a consistent list result; start a new list without it',
  );
}
