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

/** A mutex for each key. Unused keys take no memory. */
export class KeyedMutex {
  readonly #lanes = new Map<string, { readonly mutex: Mutex; sections: number }>();

  async run<Result>(key: string, section: () => Promise<Result>): Promise<Result> {
    const lane = this.#lanes.get(key) ?? { mutex: new Mutex(), sections: 0 };
    this.#lanes.set(key, lane);
    lane.sections += 1;
    try {
      return await lane.mutex.run(section);
    } finally {
      lane.sections -= 1;
      if (lane.sections === 0) this.#lanes.delete(key);
    }
  }

  /** Keys in use. */
  get size(): number {
    return this.#lanes.size;
  }
}
