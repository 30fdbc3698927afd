import { mapLimited } from '../../../foundation/concurrency/map-limited.ts';
import { repeatSilentRequest } from '../../../foundation/concurrency/repeat-silent-request.ts';
import { SluiceError, unlessMissing } from '../../../foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../../foundation/time/clock.ts';
import { configMapKind } from '../../../resource/kinds/core/config-map.ts';
import type { Stored } from '../../../resource/object/object.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import { labelSelector } from '../../../resource/selector/label-selector.ts';
import type { Storage } from '../../../resource/storage/storage.ts';
import { announce, announcedIn, announcedText, isAnnouncedScope } from '../ledger/announcements.ts';
import { scopeText } from '../ledger/marks.ts';
import { MemoryTrustLedger } from '../ledger/memory-trust-ledger.ts';
import { type ContainedStates, hasStates, joinStates, type ShownStates } from '../ledger/shown-states.ts';
import type { KnownRepository, Mark, NewMark, StatementScope } from '../ledger/trust-ledger.ts';
import { KnownObjects } from './known-objects.ts';
import { concerns, type LedgerChange } from './ledger-change.ts';
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
import { repeatWrite } from './repeat-write.ts';

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

const CONTEXT: RequestContext = { actor: { name: 'sluice' }, face: 'controller' };
/** Milliseconds for which a change waits for others. */
const FLUSH_DELAY_MS = 50;
const RETRY_DELAY_MS = 5000;
const REQUEST_TIMEOUT_MS = 5000;
const MAX_CONCURRENT_WRITES = 4;
/** Above this, all are listed. */
const MAX_READ_OBJECTS = 32;

/**
 * A ledger in ConfigMaps of a cluster, for the one process that decides. Its state is in memory; changes are written in the background, and
 * `flushed` resolves once they are in the cluster: a request is acknowledged after that.
 *
 * Each object is written with the version that was read or written last. After a lost race the other writer's content is joined: keys and
 * revocations of either count, a mark never goes down, and of a repository the content of the later leader stays. So a process that resumes
 * after its lease has expired takes nothing back. A mark that it writes late comes after all revocations that are known here.
 */
export class ClusterTrustLedger extends MemoryTrustLedger {
  readonly #options: ClusterTrustLedgerOptions;
  readonly #clock: Clock;
  /** By the name of the object. */
  readonly #waiting = new Map<string, LedgerChange>();
  /** By the name of the object, with the change. */
  readonly #writing = new Map<string, { readonly change: LedgerChange; readonly end: Promise<void> }>();
  readonly #known = new KnownObjects();
  #cancelFlush: (() => void) | undefined;
  /** Names of the objects whose last write failed. */
  readonly #failing = new Set<string>();
  #closed = false;
  #lastPosition = 0;
  #epoch = 0;
  /** Positions of keys by fingerprint, and positions and epochs of repositories by id. */
  readonly #keyPositions = new Map<string, number>();
  readonly #repositoryPlaces = new Map<string, { readonly position: number; readonly epoch: number }>();
  /** The last statement that this process announced and that has no mark yet, by the text of its announced scope. */
  readonly #announced = new Map<string, string>();
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
    let highest = 0;
    for (const place of ledger.#repositoryPlaces.values()) highest = Math.max(highest, place.epoch);
    for (const states of ledger.#shown.values())
      for (const writer of Object.keys(states)) highest = Math.max(highest, Number(writer));
    ledger.#epoch = typeof epoch === 'number' ? epoch : await epoch(highest);
    return ledger;
  }

  /** Joins what other processes have written since. */
  refresh(): Promise<void> {
    return this.#read(true);
  }

  async joinLatest(scopes: readonly StatementScope[]): Promise<void> {
    const { objects, namespace, name: ledger } = this.#options;
    const names = [...new Set(scopes.map((scope) => marksName(ledger, scope)))];
    if (names.length > MAX_READ_OBJECTS) return this.refresh();
    await mapLimited(names, MAX_CONCURRENT_WRITES, async (name) => {
      const found = await repeatSilentRequest((signal) =>
        unlessMissing(objects.get({ ...CONTEXT, signal }, { namespace, name })),
      );
      if (found !== undefined) this.joinObjects([found]);
    });
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
    const shown = [...this.#shown.keys()].find((id) => shownName(this.#options.name, id) === name);
    if (!this.#waiting.has(name)) this.#wait(name, shown === undefined ? { scopes: new Map() } : { shown });
  }

  /**
   * Resolves when all changes before the call are in the cluster; with the id of a repository, those that concern it. Rejects if a write of
   * these fails; it is repeated in the background. An object that cannot be written hinders no repository without a part in it.
   */
  async flushed(repository?: string): Promise<void> {
    const names = new Set<string>();
    for (const [name, change] of this.#waiting) if (concerns(change, repository)) names.add(name);
    for (const [name, { change }] of this.#writing) if (concerns(change, repository)) names.add(name);
    const failures: unknown[] = [];
    await mapLimited([...names], MAX_CONCURRENT_WRITES, async (name) => {
      try {
        await this.#written(name);
      } catch (error) {
        failures.push(error);
      }
    });
    if (failures.length > 0) throw failures[0];
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
    for (const { scope, digest } of entries) {
      if (isAnnouncedScope(scope)) this.#announced.set(scopeText(scope), announcedIn({ digest })[0] ?? '');
      // The mark of a statement replaces its announcement.
      else if (this.#announced.get(announcedText(scope)) === digest) this.#announced.delete(announcedText(scope));
      this.#waitForMark(scope);
    }
  }

  protected override joinMark(scope: StatementScope, stored: Mark, isLate: boolean): boolean {
    const isChanged = super.joinMark(scope, stored, isLate);
    const [own, joined] = [this.#announced.get(scopeText(scope)), this.mark(scope)];
    if (own === undefined || announcedIn(joined).includes(own)) return isChanged;
    // Of two processes that announce at once, neither replaces the statement of the other.
    this.raise([{ scope, ...announce(joined, own) }]);
    return true;
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
    const states = joinStates(present, { [shownBy]: { number, refs } });
    if (states[shownBy] === undefined)
      throw new SluiceError(
        'Unavailable',
        'nothing more is shown by this process: too many others have begun since; restart it',
      );
    this.#shown.set(repository, states);
    this.#waitForShown(repository);
    return { [shownBy]: number };
  }

  /** True if clients may have been shown packages of the repository that was last seen at an address. */
  wasShownAt(address: string): boolean {
    const id = this.repositoryAt(address)?.id;
    return id !== undefined && (Object.keys(this.shownOf(id)).length > 0 || this.hasStatementsOn(id));
  }

  /** Stops to write in the background. Await `flushed` before. */
  override close(): void {
    this.#closed = true;
    this.#cancelFlush?.();
  }

  async #read(isLate: boolean): Promise<void> {
    const { objects, namespace, name } = this.#options;
    const selected = { namespace, labelSelector: labelSelector(`${LEDGER_LABEL}=${name}`) };
    const { items } = await repeatSilentRequest((signal) => objects.list({ ...CONTEXT, signal }, selected));
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
      // As after a restore of an older object.
      if (isLate && !hasStates(states, present)) this.#waitForShown(id);
      if (hasStates(present, states)) return;
      this.#shown.set(id, joinStates(present, states));
      this.noteWritten(id);
      return;
    }
    const { position, epoch, ...repository } = content.repository;
    this.#lastPosition = Math.max(this.#lastPosition, position);
    const present = this.#repositoryPlaces.get(repository.id);
    // Of one term, a command beside the leader takes what that has written since.
    const isBeside = this.#options.readOnly !== true && this.#epoch < epoch;
    if (present !== undefined && (isBeside ? present.epoch > epoch : present.epoch >= epoch)) return;
    this.joinRepository(repository, (id) => (this.#repositoryPlaces.get(id)?.position ?? 0) > position);
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

  #waitForShown(repository: string): void {
    this.#wait(shownName(this.#options.name, repository), { shown: repository });
  }

  #wait(name: string, change: LedgerChange): void {
    if (this.#options.readOnly === true) return;
    this.#waiting.set(name, change);
    this.#scheduleFlush(this.#failing.has(name) ? RETRY_DELAY_MS : FLUSH_DELAY_MS);
  }

  #scheduleFlush(delayMs: number): void {
    if (this.#closed) return;
    this.#cancelFlush ??= this.#clock.schedule(delayMs, () => {
      this.#cancelFlush = undefined;
      // The failure was reported, and the next attempt is scheduled.
      this.flushed().catch(() => undefined);
    });
  }

  /** Writes an object as it is now. */
  async #written(name: string): Promise<void> {
    // A write that began before the last change.
    if (this.#waiting.has(name)) await this.#writing.get(name)?.end.catch(() => undefined);
    const running = this.#writing.get(name);
    if (running !== undefined) return running.end;
    const change = this.#waiting.get(name);
    if (change === undefined) return;
    this.#waiting.delete(name);
    if (this.#waiting.size === 0) {
      this.#cancelFlush?.();
      this.#cancelFlush = undefined;
    }
    const end = this.#write(name, change).finally(() => this.#writing.delete(name));
    this.#writing.set(name, { change, end });
    return end;
  }

  async #write(name: string, change: LedgerChange): Promise<void> {
    try {
      await this.#writeObject(name, change);
      this.#failing.delete(name);
    } catch (error) {
      if ('scopes' in change) for (const scope of change.scopes.values()) this.#waitForMark(scope);
      if (!this.#waiting.has(name)) this.#waiting.set(name, change);
      if (this.#failing.size === 0) this.#options.onError?.(error);
      this.#failing.add(name);
      this.#scheduleFlush(RETRY_DELAY_MS);
      throw error;
    }
  }

  /**
   * Writes with the version that is known, without reading: there is one writer. After a lost race, or if the object was deleted, it reads and
   * joins first. A deleted object is written again with all of its content.
   */
  async #writeObject(name: string, change: LedgerChange): Promise<void> {
    const { objects, namespace, name: ledger } = this.#options;
    const attempt = async (lostRace: boolean) => {
      const context = { ...CONTEXT, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) };
      if (lostRace) {
        const found = await unlessMissing(objects.get(context, { namespace, name }));
        if (found === undefined) this.#known.noteMissing(name);
        else this.joinObjects([found]);
      }
      const stored = this.#known.stored(name);
      // The content of a later term stays.
      if ('repository' in change && stored !== undefined) this.#join(readLedgerObject(ledger, stored), true);
      const data = { ...this.#known.data(name), ...this.#dataOf(change) };
      if (sameValue(data, stored?.data ?? {})) return;
      const metadata = { name, namespace, labels: { [LEDGER_LABEL]: ledger } };
      const written =
        stored === undefined
          ? await objects.create(context, configMapKind.complete({ metadata, data }))
          : await objects.update(context, { ...stored, data });
      this.#known.note(written);
    };
    await repeatWrite(this.#clock, attempt);
  }

  #dataOf(change: LedgerChange): Readonly<Record<string, string>> {
    if ('scopes' in change) {
      const marks = [...change.scopes.values()].map((scope) => ({ scope, mark: this.mark(scope) }));
      return Object.assign({}, ...marks.map(({ scope, mark }) => mark && markEntry({ scope, mark })));
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
      position = this.#lastPosition += 1;
      this.#keyPositions.set(fingerprint, position);
    }
    return position;
  }
}
