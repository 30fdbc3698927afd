import { mapLimited } from '../../../foundation/concurrency/map-limited.ts';
import { retryConflicts } from '../../../foundation/concurrency/retry-conflicts.ts';
import { isSluiceError, unlessMissing } from '../../../foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../../foundation/time/clock.ts';
import { configMapKind } from '../../../resource/kinds/core/config-map.ts';
import type { Stored } from '../../../resource/object/object.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import { labelSelector } from '../../../resource/selector/label-selector.ts';
import type { Storage } from '../../../resource/storage/storage.ts';
import { MemoryTrustLedger } from '../ledger/memory-trust-ledger.ts';
import { type ContainedStates, hasStates, joinStates, type ShownStates } from '../ledger/shown-states.ts';
import type { KnownRepository, NewMark, StatementScope } from '../ledger/trust-ledger.ts';
import { KnownObjects } from './known-objects.ts';
import {
  contentData,
  keyName,
  LEDGER_LABEL,
  type LedgerObject,
  markEntry,
  marksName,
  readLedgerObject,
  repositoryName,
  shownName,
} from './ledger-objects.ts';

export interface ClusterTrustLedgerOptions {
  /** The ConfigMaps of the cluster. */
  readonly objects: Storage<LedgerObject>;
  readonly namespace: string;
  /** Start of the names of its objects. */
  readonly name: string;
  /**
   * Of the lease under which this process writes; rises with each leader. As a function, it is called with the highest epoch in the ledger,
   * which it has to exceed: content of a lower one does not replace what is there.
   */
  readonly epoch: number | ((highest: number) => Promise<number>);
  /** For a standby: what it finds out stays in memory. */
  readonly readOnly?: boolean;
  readonly clock?: Clock;
  /** Called once for each series of failed writes, which are repeated. */
  readonly onError?: (error: unknown) => void;
}

/** What waits to be written to one object. */
type Change =
  | { readonly scopes: Map<string, StatementScope> }
  | { readonly key: string }
  | { readonly repository: string }
  | { readonly shown: string };

const CONTEXT: RequestContext = { actor: { name: 'sluice' }, face: 'controller' };
/** Milliseconds for which a change waits for others. */
const FLUSH_DELAY_MS = 50;
const RETRY_DELAY_MS = 5000;
/** Codes of a write to an object that another writer has changed, created or deleted. */
const LOST_RACES = ['Conflict', 'AlreadyExists', 'NotFound'] as const;
/** Codes of failures that often pass at once. Writes of packages wait for the ledger, and would fail with it. */
const PASSING_FAILURES = ['Internal', 'Unavailable', 'TooManyRequests'] as const;
const MAX_CONCURRENT_WRITES = 4;

/**
 * A ledger in ConfigMaps of a cluster, for the one process that decides. Its state is in memory; changes are written in the background, and
 * `flushed` resolves once they are in the cluster: a request is acknowledged after that.
 *
 * Each object is written with the version that was read or written last. After a lost race the other writer's content is joined: keys of either and revocations
 * of either count, a mark never goes down, and of a repository the content of the later leader stays. So a process that resumes after its
 * lease has expired takes nothing back. A mark that such a process writes late comes after all revocations that are known here.
 */
export class ClusterTrustLedger extends MemoryTrustLedger {
  readonly #options: ClusterTrustLedgerOptions;
  readonly #clock: Clock;
  /** By the name of the object. */
  #waiting = new Map<string, Change>();
  readonly #known = new KnownObjects();
  #writing: Promise<void> | undefined;
  #cancelFlush: (() => void) | undefined;
  #failed = false;
  #closed = false;
  #lastPosition = 0;
  #epoch = 0;
  /** Positions of keys by fingerprint, and positions and epochs of repositories by id. */
  readonly #keyPositions = new Map<string, number>();
  readonly #repositoryPlaces = new Map<string, { readonly position: number; readonly epoch: number }>();
  /** By the id of the repository. */
  readonly #shown = new Map<string, ShownStates>();

  private constructor(options: ClusterTrustLedgerOptions) {
    super();
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Reads the ledger; it is empty if there is none. Throws Corrupt, and errors of the storage. */
  static async open(options: ClusterTrustLedgerOptions): Promise<ClusterTrustLedger> {
    const ledger = new ClusterTrustLedger(options);
    await ledger.#read(false);
    const { epoch } = options;
    const epochs = [...ledger.#repositoryPlaces.values()].map((place) => place.epoch);
    ledger.#epoch = typeof epoch === 'number' ? epoch : await epoch(Math.max(0, ...epochs));
    return ledger;
  }

  /** Joins what other processes have written since. */
  refresh(): Promise<void> {
    return this.#read(true);
  }

  /** Joins objects of this ledger as other processes have written them, such as those that a watch delivers. Throws Corrupt. */
  joinObjects(objects: readonly LedgerObject[]): void {
    for (const object of objects) {
      this.#join(readLedgerObject(this.#options.name, object), true);
      this.#note(object);
    }
  }

  /** Writes an object again that was deleted, with all that this process knows of it. */
  restoreObject(name: string): void {
    if (this.#options.readOnly === true || !this.#known.noteMissing(name)) return;
    if (!this.#waiting.has(name)) this.#wait(name, { scopes: new Map() });
  }

  /** Resolves when all changes before the call are in the cluster. Rejects if a write fails; it is repeated in the background. */
  async flushed(): Promise<void> {
    // It may have begun before the last change.
    await this.#writing?.catch(() => undefined);
    if (this.#waiting.size === 0) return;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  override addKey(key: Parameters<MemoryTrustLedger['addKey']>[0]): void {
    super.addKey(key);
    this.#positionOf(key.fingerprint);
    this.#wait(keyName(this.#options.name, key.fingerprint), { key: key.fingerprint });
  }

  override revokeKey(fingerprint: string, at: string): void {
    super.revokeKey(fingerprint, at);
    this.#wait(keyName(this.#options.name, fingerprint), { key: fingerprint });
  }

  override putRepository(repository: KnownRepository): void {
    super.putRepository(repository);
    this.#lastPosition += 1;
    this.#placeRepository(repository.id, this.#lastPosition);
  }

  override noteMain(id: string, branch: string, head: string): void {
    super.noteMain(id, branch, head);
    const place = this.#repositoryPlaces.get(id);
    if (place !== undefined) this.#placeRepository(id, place.position);
  }

  override raise(entries: readonly NewMark[]): void {
    super.raise(entries);
    for (const { scope } of entries) this.#waitForMark(scope);
  }

  shownOf(repository: string): ShownStates {
    return this.#shown.get(repository) ?? {};
  }

  get shownBy(): string | undefined {
    return this.#options.readOnly === true ? undefined : `${this.#epoch}`;
  }

  advanceShown(repository: string, refs: string): ContainedStates | undefined {
    const { shownBy } = this;
    if (shownBy === undefined) return undefined;
    const present = this.shownOf(repository);
    const number = (present[shownBy]?.number ?? 0) + 1;
    this.#shown.set(repository, joinStates(present, { [shownBy]: { number, refs } }));
    this.#wait(shownName(this.#options.name, repository), { shown: repository });
    return { [shownBy]: number };
  }

  override hasStatementsAt(address: string): boolean {
    return super.hasStatementsAt(address);
  }

  /** Stops to write in the background. Await `flushed` before. */
  override close(): void {
    this.#closed = true;
    this.#cancelFlush?.();
  }

  async #read(isLate: boolean): Promise<void> {
    const { objects, namespace, name } = this.#options;
    const { items } = await objects.list(CONTEXT, {
      namespace,
      labelSelector: labelSelector(`${LEDGER_LABEL}=${name}`),
    });
    const contents = items.map((item) => readLedgerObject(name, item));
    for (const item of items) this.#note(item);
    const position = (content: (typeof contents)[number]) =>
      content.part === 'key' ? content.key.position : content.part === 'repository' ? content.repository.position : 0;
    for (const content of contents.sort((one, other) => position(one) - position(other))) this.#join(content, isLate);
  }

  #note(object: LedgerObject | Stored<LedgerObject>): void {
    if (this.#options.readOnly !== true) this.#known.note(object as Stored<LedgerObject>);
  }

  #join(content: ReturnType<typeof readLedgerObject>, isLate: boolean): void {
    if (content.part === 'marks') {
      // What is stored already is not written back.
      for (const { scope, mark } of content.marks)
        if (this.joinMark(scope, mark, isLate) && isLate && !sameValue(this.mark(scope), mark))
          this.#waitForMark(scope);
      return;
    }
    if (content.part === 'key') {
      const { position, ...key } = content.key;
      this.#lastPosition = Math.max(this.#lastPosition, position);
      this.#keyPositions.set(key.fingerprint, position);
      this.joinKey(key);
      return;
    }
    if (content.part === 'shown') {
      const { id, states } = content.shown;
      const present = this.shownOf(id);
      if (hasStates(present, states)) return;
      this.#shown.set(id, joinStates(present, states));
      this.noteWritten(id);
      return;
    }
    const { position, epoch, ...repository } = content.repository;
    this.#lastPosition = Math.max(this.#lastPosition, position);
    const present = this.#repositoryPlaces.get(repository.id);
    if (present !== undefined && present.epoch >= epoch) return;
    super.putRepository(repository);
    this.#repositoryPlaces.set(repository.id, { position, epoch });
  }

  #placeRepository(id: string, position: number): void {
    this.#repositoryPlaces.set(id, { position, epoch: this.#epoch });
    this.#wait(repositoryName(this.#options.name, id), { repository: id });
  }

  #waitForMark(scope: StatementScope): void {
    const name = marksName(this.#options.name, scope);
    const present = this.#waiting.get(name);
    const scopes = present !== undefined && 'scopes' in present ? present.scopes : new Map<string, StatementScope>();
    this.#wait(name, { scopes: scopes.set(JSON.stringify(scope), scope) });
  }

  #wait(name: string, change: Change): void {
    if (this.#options.readOnly === true) return;
    this.#waiting.set(name, change);
    this.#scheduleFlush(this.#failed ? RETRY_DELAY_MS : FLUSH_DELAY_MS);
  }

  #scheduleFlush(delayMs: number): void {
    if (this.#closed) return;
    this.#cancelFlush ??= this.#clock.schedule(delayMs, () => {
      this.#cancelFlush = undefined;
      // The failure was reported, and the next attempt is scheduled.
      this.flushed().catch(() => undefined);
    });
  }

  async #writeAll(): Promise<void> {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    const changes = [...this.#waiting];
    this.#waiting = new Map();
    const failures: unknown[] = [];
    await mapLimited(changes, MAX_CONCURRENT_WRITES, async ([name, change]) => {
      try {
        await this.#writeObject(name, change);
      } catch (error) {
        failures.push(error);
        if ('scopes' in change) for (const scope of change.scopes.values()) this.#waitForMark(scope);
        if (!this.#waiting.has(name)) this.#waiting.set(name, change);
      }
    });
    if (failures.length === 0) {
      this.#failed = false;
      return;
    }
    if (!this.#failed) this.#options.onError?.(failures[0]);
    this.#failed = true;
    this.#scheduleFlush(RETRY_DELAY_MS);
    throw failures[0];
  }

  /**
   * Writes with the version that is known, without reading: there is one writer. After a lost race, or if the object was deleted, it reads and
   * joins first. A deleted object is written again with all of its content.
   */
  async #writeObject(name: string, change: Change): Promise<void> {
    const { objects, namespace, name: ledger } = this.#options;
    let lostRace = false;
    const attempt = async () => {
      if (lostRace) {
        const found = await unlessMissing(objects.get(CONTEXT, { namespace, name }));
        if (found === undefined) this.#known.noteMissing(name);
        else this.joinObjects([found]);
      }
      const stored = this.#known.stored(name);
      // The content of a later term stays.
      if ('repository' in change && stored !== undefined) this.#join(readLedgerObject(ledger, stored), true);
      const data = { ...this.#known.data(name), ...this.#dataOf(change) };
      if (sameValue(data, stored?.data ?? {})) return;
      const labels = { [LEDGER_LABEL]: ledger };
      const written =
        stored === undefined
          ? await objects.create(CONTEXT, configMapKind.complete({ metadata: { name, namespace, labels }, data }))
          : await objects.update(CONTEXT, { ...stored, data });
      this.#known.note(written);
    };
    const isConflict = (error: unknown) => {
      const isLost = LOST_RACES.some((code) => isSluiceError(error, code));
      lostRace ||= isLost;
      return isLost || PASSING_FAILURES.some((code) => isSluiceError(error, code));
    };
    await retryConflicts(attempt, { isConflict });
  }

  #dataOf(change: Change): Readonly<Record<string, string>> {
    if ('scopes' in change) {
      const entries = [...change.scopes.values()].map((scope) => {
        const mark = this.mark(scope);
        return mark === undefined ? {} : markEntry({ scope, mark });
      });
      return Object.assign({}, ...entries);
    }
    if ('key' in change) {
      const key = this.keys().find(({ fingerprint }) => fingerprint === change.key);
      return key === undefined ? {} : contentData({ ...key, position: this.#positionOf(change.key) });
    }
    if ('shown' in change) return contentData({ id: change.shown, states: this.shownOf(change.shown) });
    const repository = this.repository(change.repository);
    const place = this.#repositoryPlaces.get(change.repository);
    return repository === undefined || place === undefined ? {} : contentData({ ...repository, ...place });
  }

  #positionOf(fingerprint: string): number {
    let position = this.#keyPositions.get(fingerprint);
    if (position === undefined) {
      this.#lastPosition += 1;
      position = this.#lastPosition;
      this.#keyPositions.set(fingerprint, position);
    }
    return position;
  }
}
