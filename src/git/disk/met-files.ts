import type { BigIntStats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { isMissing } from '../../foundation/file-system.ts';

/** A file that was replaced, renamed or written to since is another one. Its times are only compared, never counted. */
interface Met {
  readonly identity: string;
  readonly since: number;
}

/**
 * Since when this process knows that files stand unchanged, by its own running time. What a clock says of a file's age can be wrong by
 * years, and also passes while the machine sleeps with a live writer on it.
 */
export class MetFiles {
  readonly #runningTime: () => number;
  readonly #identity: (file: BigIntStats) => string;
  readonly #met = new Map<string, Met>();

  /** `runningTime` in milliseconds from any start; `identity` says by what a file is told from another of its name. */
  constructor(runningTime: () => number = () => performance.now(), identity = byChange) {
    this.#runningTime = runningTime;
    this.#identity = identity;
  }

  /** Milliseconds since this process met the very same file first; 0 for one it meets now, undefined if there is none. */
  async age(path: string): Promise<number | undefined> {
    const file = await statIfPresent(path);
    if (file === undefined) {
      this.#met.delete(path);
      return undefined;
    }
    const found = this.#identity(file);
    const now = this.#runningTime();
    const met = this.#met.get(path);
    if (met?.identity === found) return now - met.since;
    this.#met.set(path, { identity: found, since: now });
    return 0;
  }

  forget(path: string): void {
    this.#met.delete(path);
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
