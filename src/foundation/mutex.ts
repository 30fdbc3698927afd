/** Runs asynchronous sections one at a time, in the order of the calls. A section that fails does not stop the next. */
export class Mutex {
  #tail: Promise<unknown> = Promise.resolve();

  run<Result>(section: () => Promise<Result>): Promise<Result> {
    const result = this.#tail.then(section);
    // The next section starts whether this one succeeds or fails; its own caller gets the error.
    this.#tail = result.catch(() => undefined);
    return result;
  }
}
