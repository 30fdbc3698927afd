import type { ControllerOptions } from '../../src/controller/controller.ts';
import { Mutex } from '../../src/foundation/concurrency/mutex.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';

const MINUTE_MS = 60_000;
/** Of the few proposals of a sequence, with all that users do in the same minute. */
export const MAX_IN_MINUTE = 800;

/** Lets reconciliations run one after the other, so that a sequence is repeatable, and none while it is closed. */
export class Gate {
  readonly #one = new Mutex();
  #opened = Promise.withResolvers<void>();
  isOpen = false;
  /** Reconciliations so far. */
  count = 0;
  /** The most of them in one minute of the model: what is repeated without a pause stops no clock of a system. */
  busiest = 0;
  readonly #clock: Pick<Clock, 'now'>;
  #minute = 0;
  #inMinute = 0;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  open(): void {
    this.isOpen = true;
    this.#opened.resolve();
  }

  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#opened = Promise.withResolvers<void>();
  }

  /** The controller behind the gate. */
  behind(options: ControllerOptions): ControllerOptions {
    return {
      ...options,
      reconcile: async (key, context) => {
        for (;;) {
          await this.#opened.promise;
          const done = await this.#one.run(async () => {
            if (!this.isOpen) return undefined;
            this.#count();
            return { result: await options.reconcile(key, context) };
          });
          if (done !== undefined) return done.result;
        }
      },
    };
  }

  /** Throws where they would go on without end, so that the controllers pause as after each failure. */
  #count(): void {
    this.count += 1;
    const minute = Math.floor(this.#clock.now() / MINUTE_MS);
    this.#inMinute = minute === this.#minute ? this.#inMinute + 1 : 1;
    this.#minute = minute;
    this.busiest = Math.max(this.busiest, this.#inMinute);
    if (this.#inMinute > MAX_IN_MINUTE) throw new Error('too many reconciliations in one minute');
  }
}
