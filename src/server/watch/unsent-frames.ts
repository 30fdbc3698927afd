import type { Clock } from '../../foundation/time/clock.ts';

/**
 * Detects a client that reads nothing: the buffers of a connection take some frames also then, and over HTTP/2 a client can take none at
 * all. The time runs from the first frame that has not left, and again from each one that leaves.
 */
export class UnsentFrames {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #onStuck: () => void;
  #count = 0;
  #cancelTimer: (() => void) | undefined;
  #isStopped = false;

  constructor(clock: Clock, timeoutMs: number, onStuck: () => void) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#onStuck = onStuck;
  }

  /** Counts a frame; call the returned function when it has left. */
  add(): () => void {
    this.#count += 1;
    if (this.#count === 1) this.#restart();
    return () => {
      this.#count -= 1;
      if (this.#count > 0) this.#restart();
      else this.#cancelTimer?.();
    };
  }

  /** Call it when the connection or the stream has closed. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  #restart(): void {
    this.#cancelTimer?.();
    if (this.#isStopped) return;
    this.#cancelTimer = this.#clock.schedule(this.#timeoutMs, this.#onStuck);
  }
}
