import type { ElectionAction, ElectionEvent } from './election-state.ts';
import type { LeaseDraft, StoredLease } from './lease-record.ts';
import { LeaseServer, TestCandidate } from './testing.ts';

/** What happens to a candidate from a time on, for some time. */
export interface Fault {
  /**
   * `pause` stops the process while its clock and its messages go on; `freeze` also cuts it off when it goes on. `partition` loses its messages, `noWatch` only its watch, `outage`
   * those of all candidates. `kill` and `stop` end it, and start another process after `forMs`. `setClock` changes its wall clock by `forMs`.
   */
  readonly type: 'pause' | 'freeze' | 'partition' | 'noWatch' | 'outage' | 'kill' | 'stop' | 'setClock';
  readonly candidate: number;
  readonly atMs: number;
  readonly forMs: number;
}

export interface Scenario {
  readonly candidates: number;
  readonly seed: number;
  readonly loss: number;
  readonly maxLatencyMs: number;
  readonly maxRate: number;
  readonly faults: readonly Fault[];
}

/** How often each case came, over all simulations. */
export interface Tally {
  terms: number;
  conflicts: number;
  /** Writes that had an effect and no response. */
  lost: number;
  expired: number;
  released: number;
  /** Writes that had an effect after their sender gave them up. */
  late: number;
}

/** From then on there are no faults; within the time after it one candidate has to lead. */
const FAULTS_END_MS = 160_000;
const MAX_EVENTS = 100_000;
const END_MS = FAULTS_END_MS + 60_000;

interface Process {
  readonly candidate: TestCandidate;
  readonly rate: number;
  readonly offsetMs: number;
  isDead: boolean;
  pausedUntilMs: number;
  cutUntilMs: number;
  unwatchedUntilMs: number;
  /** What arrived while it was paused. */
  readonly inbox: (() => void)[];
  request: number;
  wake: number;
}

interface Simulation {
  readonly violations: readonly string[];
  readonly finalLeaders: number;
}

/** Runs candidates against one server in simulated time, and looks for a moment at which two lead. */
export function simulate(scenario: Scenario, tally: Tally): Simulation {
  const random = randomNumbers(scenario.seed);
  const server = new LeaseServer();
  const violations: string[] = [];
  const queue: { readonly atMs: number; readonly order: number; readonly run: () => void }[] = [];
  let nowMs = 0;
  let order = 0;
  const at = (atMs: number, run: () => void) => {
    order += 1;
    queue.push({ atMs: Math.max(nowMs, atMs), order, run });
  };
  const hasFaults = () => nowMs < FAULTS_END_MS;
  const latency = () => 1 + random() * (hasFaults() ? scenario.maxLatencyMs : 20);
  const isLost = (process: Process) =>
    process.isDead || (hasFaults() && (nowMs < process.cutUntilMs || random() < scenario.loss));

  const processes: Process[] = [];
  const slots: Process[] = [];
  let started = 0;
  const launch = (slot: number) => {
    started += 1;
    const candidate = new TestCandidate(`candidate-${started}`);
    // Rates and offsets belong to the machine.
    const rate = slots[slot]?.rate ?? 1 + random() * (scenario.maxRate - 1);
    const offsetMs = slots[slot]?.offsetMs ?? random() * 1e9;
    candidate.wallMs += (random() - 0.5) * 1e10;
    const process: Process = {
      ...{ candidate, rate, offsetMs, isDead: false, pausedUntilMs: 0, cutUntilMs: 0, unwatchedUntilMs: 0 },
      ...{ inbox: [], request: 0, wake: 0 },
    };
    slots[slot] = process;
    processes.push(process);
    deliver(process, { type: 'wake' });
  };

  const setTime = (process: Process) => {
    process.candidate.nowMs = process.offsetMs + nowMs * process.rate;
    process.candidate.random = random();
  };
  const leaders = () =>
    processes.filter((process) => {
      setTime(process);
      return !process.isDead && process.candidate.leads;
    });
  /** Called after every step of a candidate, since only a step can make or keep one a leader. */
  const look = () => {
    const names = leaders().map(({ candidate }) => candidate.config.identity);
    if (names.length > 1) violations.push(`${Math.round(nowMs)} ms: ${names.join(' and ')} lead`);
  };

  /** Hands an event to a process, now or when it goes on. */
  const deliver = (process: Process, event: ElectionEvent, request?: number) => {
    if (process.isDead) return;
    if (nowMs < process.pausedUntilMs) return void process.inbox.push(() => deliver(process, event, request));
    if (request !== undefined && request !== process.request) return;
    if (request !== undefined) process.request += 1;
    setTime(process);
    if (event.type === 'conflict') tally.conflicts += 1;
    const actions = process.candidate.handle(event);
    for (const action of actions) act(process, action);
    look();
    process.wake += 1;
    const { wake } = process;
    const wakeAt = nowMs + process.candidate.delayMs / process.rate;
    if (wakeAt < END_MS) at(wakeAt, () => wakeUp(process, wake));
  };
  const wakeUp = (process: Process, wake: number) => {
    if (nowMs < process.pausedUntilMs) process.inbox.push(() => wakeUp(process, wake));
    else if (wake === process.wake) deliver(process, { type: 'wake' });
  };

  const act = (process: Process, action: ElectionAction) => {
    switch (action.type) {
      case 'read':
        return send(process, () => ({ type: 'read', lease: server.lease }));
      case 'write':
        return send(process, () => write(process, action.lease), action.kind === 'release');
      case 'startWork':
        tally.terms += 1;
        return;
      case 'abortWork':
        return at(nowMs + random() * 3000, () => deliver(process, { type: 'workEnded' }));
      case 'loseWork':
        if (process.candidate.state.phase === 'electing') tally.expired += 1;
        return at(nowMs + random() * 3000, () => {
          if (process.candidate.state.work !== 'none') deliver(process, { type: 'workEnded' });
        });
      case 'end':
        process.isDead = true;
    }
  };

  const write = (process: Process, draft: LeaseDraft): ElectionEvent => {
    const before = server.lease;
    const lease = server.write(draft);
    if (lease === undefined) return { type: 'conflict' };
    if (lease !== before) for (const other of slots) if (other !== undefined) watch(other, lease);
    if (process.isDead) tally.late += 1;
    return { type: 'written', lease };
  };
  const watch = (process: Process, lease: StoredLease) => {
    const version = lease.metadata.resourceVersion;
    // A watch that breaks resumes; here the events of that time are missing.
    if (nowMs < process.unwatchedUntilMs || nowMs < process.cutUntilMs) return;
    at(nowMs + latency(), () => deliver(process, { type: 'watched', lease, version }));
  };

  /** A request can have its effect although the candidate gave it up, and also after that. */
  const send = (process: Process, effect: () => ElectionEvent, isRelease = false) => {
    const { request } = process;
    const { renewDeadlineMs } = process.candidate.config;
    const timeoutAt = nowMs + renewDeadlineMs / 2 / process.rate;
    at(timeoutAt, () => deliver(process, { type: 'failed' }, request));
    if (isLost(process)) return;
    at(nowMs + latency(), () => {
      const event = effect();
      const hasEffect = event.type === 'written';
      if (hasEffect && request !== process.request) tally.late += 1;
      if (hasEffect && isRelease) tally.released += 1;
      if (isLost(process)) {
        if (hasEffect) tally.lost += 1;
        return;
      }
      at(nowMs + latency(), () => deliver(process, event, request));
    });
  };

  const resume = (process: Process) => {
    // Timers and messages come in any order.
    const waiting = process.inbox.splice(0).sort(() => random() - 0.5);
    for (const event of waiting) event();
  };
  const strike = ({ type, candidate: index, forMs }: Fault) => {
    const slot = index % scenario.candidates;
    const process = slots[slot];
    if (process === undefined) return;
    const untilMs = Math.min(nowMs + Math.max(0, forMs), FAULTS_END_MS - 1);
    if (type === 'pause' || type === 'freeze') {
      if (type === 'freeze')
        at(untilMs, () => strike({ type: 'partition', candidate: index, atMs: untilMs, forMs: 20_000 }));
      process.pausedUntilMs = Math.max(process.pausedUntilMs, untilMs);
      at(process.pausedUntilMs, () => nowMs >= process.pausedUntilMs && resume(process));
    } else if (type === 'partition') process.cutUntilMs = Math.max(process.cutUntilMs, untilMs);
    else if (type === 'noWatch') process.unwatchedUntilMs = untilMs;
    else if (type === 'outage') for (const one of slots) one.cutUntilMs = Math.max(one.cutUntilMs, untilMs);
    else if (type === 'setClock') process.candidate.wallMs += forMs;
    else {
      if (type === 'kill') process.isDead = true;
      else deliver(process, { type: 'stop' });
      at(untilMs, () => {
        process.isDead = true;
        launch(slot);
      });
    }
  };

  for (let slot = 0; slot < scenario.candidates; slot += 1) launch(slot);
  for (const fault of scenario.faults) at(fault.atMs, () => strike(fault));
  while (nowMs < END_MS) {
    const next = takeFirst(queue);
    if (next === undefined) break;
    if (order > MAX_EVENTS) throw new Error(`more than ${MAX_EVENTS} events: the candidates do not pause`);
    nowMs = next.atMs;
    next.run();
  }
  return { violations, finalLeaders: leaders().length };
}

function takeFirst<T extends { readonly atMs: number; readonly order: number }>(queue: T[]): T | undefined {
  let best = 0;
  for (let index = 1; index < queue.length; index += 1) {
    const [one, other] = [queue[index] as T, queue[best] as T];
    if (one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)) best = index;
  }
  return queue.splice(best, 1)[0];
}

/** Numbers from 0 to below 1 that follow from a seed. */
function randomNumbers(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
