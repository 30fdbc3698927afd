import { SluiceError } from '../../../foundation/sluice-error.ts';

/** Objects of one kind that Sluice keeps for a target, and bytes of their kept fields: any server can name and send more. */
const MAX_OBJECTS = 20_000;
const MAX_BYTES = 32 * 1024 * 1024;

export interface StoreLimits {
  readonly objects: number;
  readonly bytes: number;
}

/** Counts the objects that are kept of a cluster. */
export class StoreLimit {
  readonly #plural: string;
  readonly #limits: StoreLimits;
  readonly #sizes = new Map<string, number>();
  #bytes = 0;

  constructor(plural: string, limits: StoreLimits = { objects: MAX_OBJECTS, bytes: MAX_BYTES }) {
    this.#plural = plural;
    this.#limits = limits;
  }

  /** Counts an object, undefined if it was removed. Returns the error if there are too many. */
  set(key: string, object: unknown): SluiceError | undefined {
    const size = object === undefined ? 0 : Buffer.byteLength(JSON.stringify(object));
    this.#bytes += size - (this.#sizes.get(key) ?? 0);
    if (object === undefined) this.#sizes.delete(key);
    else this.#sizes.set(key, size);
    const { objects, bytes } = this.#limits;
    if (this.#sizes.size <= objects && this.#bytes <= bytes) return undefined;
    return new SluiceError(
      'LimitExceeded',
      `it has more than ${objects} ${this.#plural}, or ${bytes} bytes of them; select fewer with spec.engine.name or spec.engine.selector`,
    );
  }
}
