import { clearTimeout, setTimeout as setTimer } from 'node:timers';
import { setTimeout } from 'node:timers/promises';
import type { Mutex } from '../../foundation/concurrency/mutex.ts';
import { conflictDelayMs, MAX_CONFLICT_RETRIES } from '../../foundation/concurrency/retry-conflicts.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { currentTrace, inTrace, type OpenSpan, type TraceContext, traced } from '../../foundation/tracing/traced.ts';
import { RefConflictError } from '../../git/errors.ts';
import type { Oid, RefUpdate } from '../../git/git-repository.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { NewMark } from '../trust/ledger/trust-ledger.ts';
import { chooseBatch } from './choose-batch.ts';
import { type Batch, gatherBatch, type RefView } from './gather-batch.ts';
import { OtherIdError } from './other-id-error.ts';
import type { PendingWrite } from './pending-write.ts';
import { type SplitBatch, splitRefusedBatch } from './split-refused-batch.ts';
import { notReadError, notRecordedError } from './unknown-outcome-errors.ts';

/** The destination of writes. */
export interface WriteTarget extends RefView {
  /** The state of the view changes only in its sections. */
  readonly mutex: Mutex;
  /** Commits updates, all or none. Throws OtherIdError if the repository has another id than that for which they were planned. */
  commit(updates: readonly RefUpdate[], marks: readonly NewMark[]): Promise<void>;
  /** Records the last statements; on disk when it returns if `durable`, or in the cluster when `recorded` resolves. */
  raiseMarks(marks: readonly NewMark[], durable: boolean): void;
  /** Resolves when what was recorded is durable; else rejects with an unknown outcome. */
  recorded(): Promise<void>;
  /** Brings updates that were committed into the view and notifies its listeners. */
  publish(updates: readonly RefUpdate[]): Promise<void>;
  /** Reads the refs again; `ref` is the one that was not as expected, if one was named. After that no ref is unconfirmed. */
  refetch(ref: string | undefined): Promise<void>;
  revision(name: string): PackageRevision | undefined;
}

/**
 * Writes in one request. Sixty drafts take some 0.3 s at a remote of 30,000 refs, half of it whatever their number; a step that
 * arrives during a request is sent with the next one, and must be done within a second.
 */
export const MAX_WRITES = 64;
/** Maximum for local repositories: half as many requests sync and rewrite `packed-refs` half as often. */
export const MAX_LOCAL_WRITES = 128;
/**
 * Maximum of a request with publications that share a commit, whose number it does not divide: as many as a wave approves at a time. Each
 * changes a branch, a tag and a record, and a push at most 1,000 refs (MAX_UPDATES).
 */
export const MAX_SHARED_WRITES = 320;
const MAX_WAITING_WRITES = 10_000;
/** So long, in milliseconds, closing waits for the request that is under way. */
const CLOSE_TIMEOUT_MS = 2000;
/** Milliseconds that a request waits at most for the writes that are being planned. */
const MAX_GATHER_MS = 300;

export interface WriteQueueOptions {
  /** Maximum number of writes in one request. Default MAX_WRITES. */
  readonly maxWrites?: number;
  /** Waits for a number of milliseconds. */
  readonly pause?: (milliseconds: number) => Promise<unknown>;
  /** Resolves when the writes that are being planned have been added; undefined if there are none. Default: there are none. */
  readonly planned?: () => Promise<void> | undefined;
  /** Waits for a place for a request, and returns what frees it; rejects if it needs none, or none any more. Default: it needs none. */
  readonly acquirePlace?: (signal: AbortSignal) => Promise<() => void>;
  /** Notes why a rule of the remote refuses the writes of a revision; undefined when one was committed. */
  readonly notePush?: (revision: string, refusal: string | undefined) => void;
}

interface QueuedWrite extends PendingWrite {
  races: number;
  /** The request that waits for it. */
  readonly trace: TraceContext | undefined;
  readonly over: PromiseWithResolvers<PackageRevision | undefined>;
}

/**
 * Group commit: writes that arrive during a request are collected and sent together in one atomic set of ref updates. The first
 * write waits only for others that are being planned, and an urgent one for none. If a request is refused, only the write that caused it
 * fails, and the others are sent again.
 */
export class WriteQueue {
  readonly #target: WriteTarget;
  #waiting: QueuedWrite[] = [];
  /** Remaining writes of refused requests; each group is sent separately. */
  readonly #groups: (readonly QueuedWrite[])[] = [];
  #wasGroup = false;
  /** Fewer after a request that failed as a whole, which its size may be the reason of. */
  #most: number;
  /** The same for requests with a shared commit. */
  #mostShared = MAX_SHARED_WRITES;
  readonly #limit: number;
  readonly #pause: (milliseconds: number) => Promise<unknown>;
  readonly #planned: () => Promise<void> | undefined;
  readonly #acquirePlace: (signal: AbortSignal) => Promise<() => void>;
  readonly #notePush: NonNullable<WriteQueueOptions['notePush']>;
  /** Ends the wait for writes that are being planned. */
  #endGathering: () => void = () => undefined;
  /** Set while there are writes. */
  #run: Promise<void> | undefined;
  /** Aborted when no more writes are taken. */
  readonly #closing = new AbortController();

  constructor(
    target: WriteTarget,
    {
      maxWrites: most = MAX_WRITES,
      pause = (ms) => setTimeout(ms),
      planned = () => undefined,
      acquirePlace = async () => () => undefined,
      notePush = () => undefined,
    }: WriteQueueOptions = {},
  ) {
    this.#target = target;
    this.#limit = most;
    this.#most = most;
    this.#pause = pause;
    this.#planned = planned;
    this.#acquirePlace = acquirePlace;
    this.#notePush = notePush;
  }

  /**
   * Resolves with the revision after the write, undefined if it was deleted; by then the write is durable at its
   * destination.
   */
  add(write: PendingWrite): Promise<PackageRevision | undefined> {
    if (this.#closed) return Promise.reject(closingError());
    if (this.#waiting.length >= MAX_WAITING_WRITES)
      return Promise.reject(
        new SluiceError(
          'TooManyRequests',
          `cannot queue the write: ${this.#waiting.length} writes of this repository wait already; try again later`,
        ),
      );
    const trace = currentTrace();
    const { plan: planned, shared } = write;
    const plan =
      typeof planned === 'function' ? (head: Oid | undefined) => inTrace(trace, () => planned(head)) : planned;
    const sharing = shared && {
      shared: { ...shared, decide: (head: Oid | undefined) => inTrace(trace, () => shared.decide(head)) },
    };
    const entry: QueuedWrite = { ...write, plan, ...sharing, races: 0, trace, over: Promise.withResolvers() };
    this.#waiting.push(entry);
    if (entry.urgent || this.#waiting.length >= this.#most) this.#endGathering();
    // Later rounds serve other requests.
    this.#run ??= inTrace(undefined, () => this.#rounds());
    return entry.over.promise;
  }

  /**
   * Rejects the writes that still wait. Resolves when the request that is under way is over, or after some seconds: a write that hangs
   * fails with an unknown outcome when the connection is closed.
   */
  async close(clock: Clock): Promise<void> {
    const backlog = Promise.withResolvers<void>();
    const cancel = clock.schedule(CLOSE_TIMEOUT_MS, backlog.resolve);
    await Promise.race([this.drain(), backlog.promise]);
    cancel();
  }

  /** Takes no more writes, and resolves when the request that is in progress has ended. Waiting writes fail; they changed nothing. */
  async drain(): Promise<void> {
    this.#closing.abort();
    this.#endGathering();
    this.#drop();
    await this.#run;
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted;
  }

  #drop(): void {
    for (const { over } of [...this.#waiting.splice(0), ...this.#groups.splice(0).flat()]) over.reject(closingError());
  }

  async #rounds(): Promise<void> {
    while (this.#waiting.length > 0 || this.#groups.length > 0) {
      // A random pause prevents that two servers collide on the main branch again; queued writes go first.
      const races = this.#waiting.length > 0 ? 0 : Math.max(0, ...this.#groups.flat().map((entry) => entry.races));
      if (races > 0) await this.#pause(conflictDelayMs(races));
      await this.#gather();
      const release = await this.#acquirePlace(this.#closing.signal).catch(() => () => undefined);
      await this.#target.mutex.run(this.#round);
      release();
      // Remaining writes of a request that was in progress when the queue was closed.
      if (this.#closed) this.#drop();
    }
    this.#run = undefined;
  }

  /** A request for twenty drafts takes hardly longer than one for the first of them. */
  async #gather(): Promise<void> {
    const isPressing = this.#groups.length > 0 || this.#waiting.some(({ urgent }) => urgent);
    if (isPressing || this.#waiting.length >= this.#most || this.#closed) return;
    const planned = this.#planned();
    if (planned === undefined) return;
    const ended = Promise.withResolvers<void>();
    const timer = setTimer(ended.resolve, MAX_GATHER_MS);
    this.#endGathering = ended.resolve;
    await Promise.race([planned, ended.promise]);
    clearTimeout(timer);
  }

  /** One request. Never throws: an error rejects the writes that were in the request. */
  readonly #round = async (): Promise<void> => {
    let entries = this.#next();
    if (entries.length === 0) return;
    try {
      await this.#confirmRefs(entries);
      const batch = await gatherBatch(entries, this.#target);
      for (const { write, error } of batch.failed) write.over.reject(error);
      this.#waiting.unshift(...batch.later);
      entries = batch.planned.map(({ write }) => write);
      if (batch.planned.length === 0) return;
      await traced(
        'package.transaction',
        { 'sluice.writes': batch.planned.length, 'sluice.ref_updates': batch.updates.length },
        (span) => this.#send(batch, span),
        { origins: batch.planned.map(({ write }) => write.trace) },
      );
    } catch (error) {
      for (const { over } of entries) over.reject(error);
    }
  };

  /** Groups alternate with new writes, so that the search for the cause of a refusal delays no other write. */
  #next(): readonly QueuedWrite[] {
    const group = this.#wasGroup && this.#waiting.length > 0 ? undefined : this.#groups.shift();
    this.#wasGroup = group !== undefined;
    if (group !== undefined) return group;
    const chosen = new Set(chooseBatch(this.#waiting, this.#most, this.#mostShared));
    this.#waiting = this.#waiting.filter((entry) => !chosen.has(entry));
    return [...chosen];
  }

  async #send({ planned, updates }: Batch<QueuedWrite>, span: OpenSpan): Promise<void> {
    const marks = planned.flatMap(({ plan }) => plan.marks);
    try {
      await this.#target.commit(updates, marks);
    } catch (error) {
      span.set({ 'error.type': isSluiceError(error) ? error.code : 'unknown' });
      await this.#refused(planned, error);
      return;
    }
    this.#most = Math.min(this.#limit, this.#most * 2);
    this.#mostShared = Math.min(MAX_SHARED_WRITES, this.#mostShared * 2);
    for (const { plan } of planned) this.#notePush(plan.name, undefined);
    const mustBeDurable = planned.some(({ plan }) => plan.revokes);
    try {
      this.#target.raiseMarks(marks, mustBeDurable);
    } catch (error) {
      for (const { write } of planned) write.over.reject(notRecordedError(error));
      return;
    }
    try {
      await this.#target.publish(updates);
    } catch (error) {
      for (const { write } of planned) write.over.reject(notReadError(error));
      return;
    }
    // After the view has it: a request that is planned meanwhile, or repeated after a failure, must see the statements that the marks require.
    try {
      if (mustBeDurable) await this.#target.recorded();
    } catch (error) {
      for (const { write } of planned) write.over.reject(error);
      return;
    }
    for (const { write, plan } of planned) write.over.resolve(this.#target.revision(plan.name));
  }

  async #refused(planned: Batch<QueuedWrite>['planned'], error: unknown): Promise<void> {
    const { failed, again, overtaken, changed } =
      error instanceof OtherIdError
        ? splitByPlan(planned.map(({ write }) => write))
        : splitRefusedBatch(error, planned, this.#target.main);
    if (isSluiceError(error, 'Unavailable') || isSluiceError(error, 'Timeout')) {
      this.#mostShared = Math.max(1, Math.floor(planned.length / 2));
      this.#most = Math.min(this.#limit, this.#mostShared);
    }
    // Refs with unexpected values are read again, so that the next attempt uses the current state.
    if (changed || (failed.length > 0 && isSluiceError(error, 'Conflict')))
      await this.#target.refetch(error instanceof RefConflictError ? error.details?.ref : undefined);
    const lost = new Set(failed);
    for (const entry of overtaken) {
      entry.races += 1;
      // The signal of a request ends with it.
      if (entry.races > MAX_CONFLICT_RETRIES || entry.signal?.aborted === true) lost.add(entry);
    }
    if (isSluiceError(error, 'PushRefused'))
      for (const { write, plan } of planned) if (lost.has(write)) this.#notePush(plan.name, error.message);
    for (const { over } of lost) over.reject(error);
    for (const group of again) {
      const left = group.filter((entry) => !lost.has(entry));
      if (left.length > 0) this.#groups.push(left);
    }
  }

  /** Refs with an unconfirmed value are read before they are changed. If that fails, their writes are not committed. */
  async #confirmRefs(entries: readonly QueuedWrite[]): Promise<void> {
    const { unconfirmedRefs } = this.#target;
    if (unconfirmedRefs.size === 0) return;
    const concerned = entries.some(({ plan }) =>
      typeof plan === 'function' ? true : plan.updates.some(({ ref }) => unconfirmedRefs.has(ref)),
    );
    if (!concerned) return;
    try {
      await this.#target.refetch(undefined);
    } catch (error) {
      if (!isSluiceError(error)) throw error;
      // `gatherBatch` rejects the affected writes.
    }
  }
}

/** What is planned when its turn comes is planned again; for the rest, its caller has to plan. */
function splitByPlan(writes: readonly QueuedWrite[]): SplitBatch<QueuedWrite> {
  const [again, failed] = [true, false].map((isPlannedHere) =>
    writes.filter(({ plan }) => (typeof plan === 'function') === isPlannedHere),
  ) as [QueuedWrite[], QueuedWrite[]];
  return { failed, again: [again], overtaken: again, changed: false };
}

/** The error of writes after the queue is closed. */
export function closingError(): SluiceError {
  return new SluiceError(
    'Unavailable',
    'the repository is being closed; nothing was written. Try again when it is open',
  );
}
