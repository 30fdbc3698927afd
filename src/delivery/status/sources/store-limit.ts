import { SluiceError } from '../../../foundation/sluice-error.ts';

/** Objects of one kind that Sluice keeps for a target, and bytes of their kept fields: any server can name and send more. */
const MAX_OBJECTS = 20_000;
const MAX_BYTES = 32 * 1024 * 1024;

interface StoreLimits {
  readonly objects: number;
  readonly bytes: number;
}

/** Bytes that the targets of one namespace keep together: a user of a namespace can write many of them. */
const MAX_SHARED_BYTES = 128 * 1024 * 1024;

/** What several stores keep together. */
export class SharedBytes {
  readonly max: number;
  #bytes = 0;

  constructor(max = MAX_SHARED_BYTES) {
    this.max = max;
  }

  /** Returns whether it is not too much. */
  add(bytes: number): boolean {
    this.#bytes += bytes;
    return this.#bytes <= this.max;
  }
}

/** Counts the objects that are kept of a cluster. */
export class StoreLimit {
  readonly #plural: string;
  readonly #limits: StoreLimits;
  readonly #shared: SharedBytes | undefined;
  readonly #sizes = new Map<string, number>();
  #bytes = 0;

  constructor(
    plural: string,
    shared: SharedBytes | undefined,
    limits: StoreLimits = { objects: MAX_OBJECTS, bytes: MAX_BYTES },
  ) {
    this.#plural = plural;
    this.#shared = shared;
    this.#limits = limits;
  }

  /** The objects are no longer kept. */
  release(): void {
    this.#shared?.add(-this.#bytes);
    this.#bytes = 0;
    this.#sizes.clear();
  }

  /** Counts an object, undefined if it was removed. Returns the error if there are too many. */
  set(key: string, object: unknown): SluiceError | undefined {
    const size = object === undefined ? 0 : Buffer.byteLength(JSON.stringify(object));
    const change = size - (this.#sizes.get(key) ?? 0);
    this.#bytes += change;
    const fits = this.#shared?.add(change) ?? true;
    if (object === undefined) this.#sizes.delete(key);
    else this.#sizes.set(key, size);
    const { objects, bytes } = this.#limits;
    const next = 'select fewer with spec.engine.name or spec.engine.selector';
    if (!fits)
      return new SluiceError(
        'LimitExceeded',
        `the targets of the namespace keep more than ${this.#shared?.max} bytes of their engines; ${next}`,
      );
    if (this.#sizes.size <= objects && this.#bytes <= bytes) return undefined;
    return new SluiceError(
      'LimitExceeded',
      `it has more than ${objects} ${this.#plural}, or ${bytes} bytes of them; ${next}`,
    );
  }
}
