import { SluiceError } from '../../foundation/sluice-error.ts';

/** Which requests share their places: those that change something, those that read, and those of controllers. */
export type Lane = 'mutating' | 'reading' | 'priority';

export interface InFlightLimits {
  readonly mutating: number;
  readonly reading: number;
  readonly priority: number;
}

export const DEFAULT_IN_FLIGHT: InFlightLimits = { mutating: 200, reading: 400, priority: 200 };

const READING_VERBS = new Set(['get', 'list', 'watch']);

/** Counts requests that are being worked on. Nobody waits in line: who finds no place is told to come again. */
export class InFlight {
  readonly #limits: InFlightLimits;
  readonly #running: Record<Lane, number> = { mutating: 0, reading: 0, priority: 0 };

  constructor(limits: InFlightLimits) {
    this.#limits = limits;
  }

  running(lane: Lane): number {
    return this.#running[lane];
  }

  /** Takes a place; the returned function gives it back. TooManyRequests if there is none. */
  enter(lane: Lane): () => void {
    if (this.#running[lane] >= this.#limits[lane])
      throw new SluiceError('TooManyRequests', 'too many requests, please try again later');
    this.#running[lane] += 1;
    return () => {
      this.#running[lane] -= 1;
    };
  }
}

export function laneOf(verb: string, priority: boolean): Lane {
  if (priority) return 'priority';
  return READING_VERBS.has(verb) ? 'reading' : 'mutating';
}
