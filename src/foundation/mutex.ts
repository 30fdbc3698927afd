/** Runs asynchronous sections one after the other, in the order in which they were asked for. */
export class Mutex {
  #tail: Promise<unknown> = Promise.resolve();

  run<Result>(section: () => Promise<Result>): Promise<Result> {
    const result = this.#tail.then(section);
    // The next section starts whether this one succeeds or fails; its own caller gets the error.
    this.#tail = result.catch(() => undefined);
    return result;
  }
}
