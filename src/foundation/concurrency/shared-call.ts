/**
 * A call that concurrent callers share, each of which must see everything that happened before its own call: one that arrives while the
 * work runs waits for the next run, which serves all that wait.
 */
export class SharedCall {
  readonly #work: () => Promise<void>;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  /** True if neither a run is in progress nor a caller waits for one. */
  get isIdle(): boolean {
    return this.#running === undefined && this.#next === undefined;
  }

  call(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#work().finally(() => {
        this.#running = undefined;
      });
      return this.#running;
    }
    const next = () => {
      this.#next = undefined;
      return this.call();
    };
    this.#next ??= this.#running.then(next, next);
    return this.#next;
  }
}
