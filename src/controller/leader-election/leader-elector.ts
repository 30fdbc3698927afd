import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { leaseKind } from '../../resource/kinds/coordination/lease.ts';
import { Informer } from '../informer.ts';
import { checkElectionConfig, DEFAULT_ELECTION_TIMES, type ElectionConfig } from './election-config.ts';
import {
  type ElectionAction,
  type ElectionEvent,
  type ElectionState,
  INITIAL_STATE,
  leadsAt,
  type Moment,
  overdueMs,
  type RequestKind,
} from './election-state.ts';
import { nextWakeMs, step } from './election-step.ts';
import type { LeaderElectorOptions } from './leader-elector-options.ts';
import { holderOf, type LeaseDraft } from './lease-record.ts';

/** Milliseconds after the lease duration for which the work of an ended term may go on before `check` fails. */
const MAX_OVERDUE_MS = 20_000;

/**
 * Elects one of several processes by a Lease, as client-go does, and compatible with it. `step` decides; this class sends the requests,
 * follows the Lease and keeps the time.
 */
export class LeaderElector {
  readonly identity: string;
  readonly #options: LeaderElectorOptions;
  readonly #config: ElectionConfig;
  readonly #monotonicNow: () => number;
  readonly #ended = Promise.withResolvers<void>();
  readonly #events: ElectionEvent[] = [];
  #state: ElectionState = INITIAL_STATE;
  #running: Promise<void> | undefined;
  #cancelTimer: () => void = () => undefined;
  #request = new AbortController();
  #work = new AbortController();
  #failure: { readonly error: unknown } | undefined;

  constructor(options: LeaderElectorOptions) {
    const { namespace, name, identity = `${hostname()}_${randomUUID()}` } = options;
    const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = { ...DEFAULT_ELECTION_TIMES, ...options };
    this.identity = identity;
    this.#options = options;
    this.#config = { namespace, name, identity, leaseDurationMs, renewDeadlineMs, retryPeriodMs };
    this.#monotonicNow = options.monotonicNow ?? (() => performance.now());
    checkElectionConfig(this.#config);
  }

  /**
   * Takes part in the election until the signal aborts or the work ends, which it does repeatedly: a candidate whose term ended takes part
   * again. Resolves when the work has ended and the lease is released, or after the renew deadline; rejects with the error of the work.
   */
  run(signal: AbortSignal): Promise<void> {
    this.#running ??= this.#run(signal);
    return this.#running;
  }

  /**
   * True if this process leads now. Checks the time at every call: the first call after a pause of the process returns false if the lease
   * could have expired. A result is true only for the moment: what must not happen twice needs a fence of its own.
   */
  isLeader(): boolean {
    return leadsAt(this.#state, this.#monotonicNow());
  }

  /** Identity of the holder according to the last known record, which may have expired; undefined if the lease is free. */
  get leaderIdentity(): string | undefined {
    return holderOf(this.#state.seen?.lease);
  }

  /** A health check: throws if the work of an ended term does not end, so that the process has to be restarted. */
  check(): void {
    const overdue = overdueMs(this.#state, this.#monotonicNow());
    if (overdue <= this.#config.leaseDurationMs - this.#config.renewDeadlineMs + MAX_OVERDUE_MS) return;
    const seconds = Math.round(overdue / 1000);
    throw new SluiceError(
      'Unavailable',
      `the term as leader ended ${seconds} s ago, but the work of the leader goes on`,
    );
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { client, clock, namespace, name, onError, random } = this.#options;
    const informer = new Informer({
      client,
      kind: leaseKind,
      selection: { namespace, fieldSelector: `metadata.name=${name}` },
      clock,
      ...(random === undefined ? {} : { random }),
      onError: (error) => onError?.(error),
    });
    informer.addHandler(({ type, object }) => {
      const lease = type === 'delete' ? undefined : object;
      this.#dispatch({ type: 'watched', lease, version: object.metadata.resourceVersion });
    });
    const stop = () => this.#dispatch({ type: 'stop' });
    signal.addEventListener('abort', stop);
    try {
      this.#dispatch({ type: signal.aborted ? 'stop' : 'wake' });
      if (!signal.aborted) informer.start();
      await this.#ended.promise;
    } finally {
      signal.removeEventListener('abort', stop);
      this.#cancelTimer();
      this.#request.abort();
      await informer.stop();
    }
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Handles an event; those that callbacks cause meanwhile come after it. */
  #dispatch(event: ElectionEvent): void {
    this.#events.push(event);
    if (this.#events.length > 1) return;
    const before = this.leaderIdentity;
    for (let next = this.#events[0]; next !== undefined; next = this.#events[0]) {
      const { state, actions } = step(this.#state, next, this.#moment(), this.#config);
      this.#state = state;
      for (const action of actions) this.#execute(action);
      this.#events.shift();
    }
    this.#wakeLater();
    const leader = this.leaderIdentity;
    if (leader !== before) this.#notify(() => this.#options.onNewLeader?.(leader));
  }

  #moment(): Moment {
    const { clock, random = Math.random } = this.#options;
    return { monotonicMs: this.#monotonicNow(), wallMs: clock.now(), random: random() };
  }

  #wakeLater(): void {
    this.#cancelTimer();
    const wakeMs = nextWakeMs(this.#state);
    if (wakeMs === Number.POSITIVE_INFINITY) return;
    const delay = Math.max(0, wakeMs - this.#monotonicNow());
    this.#cancelTimer = this.#options.clock.schedule(delay, () => this.#dispatch({ type: 'wake' }));
  }

  #execute(action: ElectionAction): void {
    if (action.type === 'read') this.#send('read', (signal) => this.#read(signal));
    else if (action.type === 'write') this.#send(action.kind, (signal) => this.#write(action.lease, signal));
    else if (action.type === 'startWork') this.#startWork();
    else if (action.type === 'abortWork') this.#work.abort();
    else if (action.type === 'end') this.#ended.resolve();
    else {
      this.#work.abort();
      this.#record('stopped leading');
      this.#notify(() => this.#options.onStoppedLeading?.());
    }
  }

  async #read(signal: AbortSignal): Promise<ElectionEvent> {
    const { namespace, name } = this.#config;
    return { type: 'read', lease: await this.#options.client.find(leaseKind, { namespace, name }, { signal }) };
  }

  async #write(draft: LeaseDraft, signal: AbortSignal): Promise<ElectionEvent> {
    const { client } = this.#options;
    const { apiVersion, kind } = leaseKind;
    const isNew = draft.metadata.resourceVersion === undefined;
    const lease = isNew
      ? await client.create(leaseKind, draft, { signal })
      : await client.update(leaseKind, { apiVersion, kind, ...draft }, { signal });
    return { type: 'written', lease };
  }

  /** Sends a request and reports its result, or that there was none in time, exactly once. */
  #send(kind: RequestKind, send: (signal: AbortSignal) => Promise<ElectionEvent>): void {
    const request = new AbortController();
    this.#request = request;
    let isOpen = true;
    const finish = (event: ElectionEvent) => {
      if (!isOpen) return;
      isOpen = false;
      cancel();
      this.#dispatch(event);
    };
    // Half of the deadline, so that a leader can try a second time.
    const timeoutMs = this.#config.renewDeadlineMs / 2;
    const cancel = this.#options.clock.schedule(timeoutMs, () => {
      request.abort();
      fail(new SluiceError('Timeout', `there was no response within ${timeoutMs} ms`));
    });
    const fail = (error: unknown) => {
      if (!isOpen || this.#state.phase === 'ended') return;
      // Another candidate was faster, or the Lease was created or deleted meanwhile: no failure.
      const isRace = ['Conflict', 'AlreadyExists', 'NotFound'].some(
        (code) => isSluiceError(error) && error.code === code,
      );
      if (!isRace) this.#report(kind, error);
      finish({ type: isRace ? 'conflict' : 'failed' });
    };
    send(request.signal).then(finish, fail);
  }

  #startWork(): void {
    const work = new AbortController();
    this.#work = work;
    this.#record('became leader');
    const run = async () => this.#options.onStartedLeading(work.signal);
    run().then(
      () => this.#dispatch({ type: 'workEnded' }),
      (error: unknown) => {
        // An aborted work may fail with the reason of the abort; run() does not end because of it.
        if (work.signal.aborted) this.#options.onError?.(error);
        else this.#failure = { error };
        this.#dispatch({ type: 'workEnded' });
      },
    );
  }

  #record(what: string): void {
    const lease = this.#state.seen?.lease;
    if (lease !== undefined)
      this.#options.recorder?.record(lease, 'Normal', 'LeaderElection', `${this.identity} ${what}`);
  }

  #report(kind: RequestKind, cause: unknown): void {
    const { namespace, name } = this.#config;
    const code = isSluiceError(cause) ? cause.code : 'Internal';
    const message = `cannot ${kind} Lease ${namespace}/${name}: ${messageOf(cause)}`;
    this.#options.onError?.(new SluiceError(code, message, { cause }));
  }

  /** A callback that throws must not end the election. */
  #notify(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#options.onError?.(error);
    }
  }
}
