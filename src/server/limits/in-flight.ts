import type { Clock } from '../../foundation/time/clock.ts';
import { FairQueue } from './fair-queue.ts';

/** Requests of a lane share its slots: mutating requests, reading requests, and those of controllers. */
export type Lane = 'mutating' | 'reading' | 'priority';

export interface InFlightLimits {
  /** Slots of each lane. */
  readonly mutating: number;
  readonly reading: number;
  readonly priority: number;
  /** The part of a lane's slots that one user may have, up to 1; at least one slot. */
  readonly maxShareOfUser: number;
  /** Requests that wait in a lane, of all users and of one. */
  readonly maxWaiting: number;
  readonly maxWaitingOfUser: number;
  /** Milliseconds that a request may wait. */
  readonly maxWaitMs: number;
}

export const DEFAULT_IN_FLIGHT: InFlightLimits = {
  ...{ mutating: 200, reading: 400, priority: 200 },
  maxShareOfUser: 0.5,
  maxWaiting: 2000,
  maxWaitingOfUser: 500,
  maxWaitMs: 15_000,
};

const READING_VERBS = new Set(['get', 'list', 'watch']);

/** The requests that run, and those that wait for a slot. */
export class InFlight {
  readonly #lanes: Readonly<Record<Lane, FairQueue>>;

  constructor({ maxShareOfUser, mutating, reading, priority, ...queue }: InFlightLimits, clock: Clock) {
    const lane = (maxRunning: number) =>
      new FairQueue(
        { ...queue, maxRunning, maxRunningOfUser: Math.max(1, Math.floor(maxRunning * maxShareOfUser)) },
        clock,
      );
    this.#lanes = { mutating: lane(mutating), reading: lane(reading), priority: lane(priority) };
  }

  running(lane: Lane): number {
    return this.#lanes[lane].running;
  }

  waiting(lane: Lane): number {
    return this.#lanes[lane].waiting;
  }

  /** See FairQueue. */
  acquire(lane: Lane, user: string, signal: AbortSignal): Promise<() => void> {
    return this.#lanes[lane].acquire(user, signal);
  }
}

export function laneOf(verb: string, priority: boolean): Lane {
  if (priority) return 'priority';
  return READING_VERBS.has(verb) ? 'reading' : 'mutating';
}
