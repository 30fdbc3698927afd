import type { ControllerOptions } from '../../src/controller/controller.ts';
import { Mutex } from '../../src/foundation/concurrency/mutex.ts';

/** Lets reconciliations run one after the other, so that a sequence is repeatable, and none while it is closed. */
export class Gate {
  readonly #one = new Mutex();
  #opened = Promise.withResolvers<void>();
  isOpen = false;
  /** Reconciliations so far. */
  count = 0;

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
            this.count += 1;
            return { result: await options.reconcile(key, context) };
          });
          if (done !== undefined) return done.result;
        }
      },
    };
  }
}
