import type { BigIntStats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { isMissing } from '../../foundation/files/file-system.ts';

/** A file that was replaced, renamed or written to since is another one. The identity is only compared. */
interface Observation {
  readonly identity: string;
  readonly since: number;
}

/**
 * For how long this process has observed that files are unchanged, by its own running time. The age of a file by the clock can be wrong
 * by years, and grows while the machine sleeps with a live writer on it.
 */
export class ObservedFiles {
  readonly #runningTime: () => number;
  readonly #identity: (file: BigIntStats) => string;
  readonly #observations = new Map<string, Observation>();

  /** `runningTime` returns milliseconds since any start; `identity` distinguishes a file from a later one of the same name. */
  constructor(runningTime: () => number = () => performance.now(), identity = byChange) {
    this.#runningTime = runningTime;
    this.#identity = identity;
  }

  /** Milliseconds since this process first observed this very file; 0 for a new one, undefined if there is none. */
  async age(path: string): Promise<number | undefined> {
    const file = await statIfPresent(path);
    if (file === undefined) {
      this.#observations.delete(path);
      return undefined;
    }
    const found = this.#identity(file);
    const now = this.#runningTime();
    const observation = this.#observations.get(path);
    if (observation?.identity === found) return now - observation.since;
    this.#observations.set(path, { identity: found, since: now });
    return 0;
  }

  forget(path: string): void {
    this.#observations.delete(path);
  }
}

function byChange({ ino, ctimeNs }: BigIntStats): string {
  return `${ino}:${ctimeNs}`;
}

async function statIfPresent(path: string): Promise<BigIntStats | undefined> {
  try {
    return await stat(path, { bigint: true });
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
