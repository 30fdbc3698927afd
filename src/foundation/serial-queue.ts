/** Runs tasks one after the other, in the order given. A task that fails does not stop the next. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task);
    this.#last = result.catch(() => {
      // The caller of `run` gets the error; the queue only needs to know that the task has ended.
    });
    return result;
  }
}
