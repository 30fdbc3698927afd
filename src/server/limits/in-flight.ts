import type { Clock } from '../../foundation/clock.ts';
import { FairQueue } from './fair-queue.ts';

/** Which requests share their places: those that change something, those that read, and those of controllers. */
export type Lane = 'mutating' | 'reading' | 'priority';

export interface InFlightLimits {
  /** Requests at work in each lane. */
  readonly mutating: number;
  readonly reading: number;
  readonly priority: number;
  /** The part of a lane's places that one user can have, up to 1; at least one place. */
  readonly shareOfUser: number;
  /** Requests that wait in a lane, of all users and of one. */
  readonly waiting: number;
  readonly waitingOfUser: number;
  /** Milliseconds that a request waits at most. */
  readonly waitMs: number;
}

export const DEFAULT_IN_FLIGHT: InFlightLimits = {
  ...{ mutating: 200, reading: 400, priority: 200 },
  shareOfUser: 0.5,
  waiting: 2000,
  waitingOfUser: 500,
  waitMs: 15_000,
};

const READING_VERBS = new Set(['get', 'list', 'watch']);

/** The requests that are being worked on, and those that wait for their turn. */
export class InFlight {
  readonly #lanes: Readonly<Record<Lane, FairQueue>>;

  constructor({ shareOfUser, mutating, reading, priority, ...queue }: InFlightLimits, clock: Clock) {
    const lane = (running: number) =>
      new FairQueue({ ...queue, running, runningOfUser: Math.max(1, Math.floor(running * shareOfUser)) }, clock);
    this.#lanes = { mutating: lane(mutating), reading: lane(reading), priority: lane(priority) };
  }

  running(lane: Lane): number {
    return this.#lanes[lane].running;
  }

  waiting(lane: Lane): number {
    return this.#lanes[lane].waiting;
  }

  /** See FairQueue. */
  enter(lane: Lane, user: string, signal: AbortSignal): Promise<() => void> {
    return this.#lanes[lane].enter(user, signal);
  }
}

export function laneOf(verb: string, priority: boolean): Lane {
  if (priority) return 'priority';
  return READING_VERBS.has(verb) ? 'reading' : 'mutating';
}
