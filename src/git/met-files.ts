import type { BigIntStats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { isMissing } from './file-system.ts';

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
  readonly #met = new Map<string, Met>();

  /** `runningTime` in milliseconds from any start. */
  constructor(runningTime: () => number = () => performance.now()) {
    this.#runningTime = runningTime;
  }

  /** Milliseconds since this process met the very same file first; 0 for one it meets now, undefined if there is none. */
  async age(path: string): Promise<number | undefined> {
    const found = await identityOf(path);
    if (found === undefined) {
      this.#met.delete(path);
      return undefined;
    }
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

async function identityOf(path: string): Promise<string | undefined> {
  let found: BigIntStats;
  try {
    found = await stat(path, { bigint: true });
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  return `${found.ino}:${found.ctimeNs}`;
}
