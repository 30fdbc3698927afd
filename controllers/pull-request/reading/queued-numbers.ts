import type { Forge } from '../../../src/forge/forge.ts';
import { unlessMissing } from '../../../src/foundation/sluice-error.ts';

/** The numbers of pull requests that wait in the merge queue of the host, as they were last read. */
export class QueuedNumbers {
  readonly #numbers = new Set<number>();

  get size(): number {
    return this.#numbers.size;
  }

  has(number: number): boolean {
    return this.#numbers.has(number);
  }

  /** Returns whether that is another state than before. */
  note(number: number, isQueued: boolean): boolean {
    if (isQueued === this.#numbers.has(number)) return false;
    if (isQueued) this.#numbers.add(number);
    else this.#numbers.delete(number);
    return true;
  }

  /** Reads which of them have left the queue, apart from those that are known to be there. Returns them. */
  async readLeft(
    forge: Pick<Forge, 'mergeability'>,
    known: ReadonlySet<number>,
    signal: AbortSignal,
  ): Promise<ReadonlySet<number>> {
    const unknown = [...this.#numbers].filter((number) => !known.has(number));
    // Users may delete pull requests.
    const states = await Promise.all(unknown.map((number) => unlessMissing(forge.mergeability(number, signal))));
    const left = new Set(unknown.filter((_, at) => states[at] !== 'queued'));
    for (const number of left) this.#numbers.delete(number);
    return left;
  }
}
