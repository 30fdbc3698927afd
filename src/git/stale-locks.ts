import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing, removeFile } from './file-system.ts';

/**
 * Frees refs whose lock was left behind by a writer that was killed. Git never does that by itself: the ref would stay locked for
 * ever. A lock counts as left behind when this process has met the very same file twice, `staleAfter` milliseconds of its own
 * running time apart: wall-clock time would also pass while the machine sleeps with a live writer on it.
 */
export class StaleLocks {
  readonly #gitDir: string;
  readonly #staleAfter: number;
  /** Path → which file it was and when it was first met. */
  readonly #met = new Map<string, { readonly file: string; readonly since: number }>();

  constructor(gitDir: string, staleAfter: number) {
    this.#gitDir = gitDir;
    this.#staleAfter = staleAfter;
  }

  /** To be called when a writer found one of these refs locked. True if a stale lock was removed and trying again makes sense. */
  async release(refs: readonly string[]): Promise<boolean> {
    const files = new Set([...refs.map((ref) => `${ref}.lock`), 'packed-refs.lock', 'packed-refs.new']);
    let released = false;
    for (const file of files) released = (await this.#release(file)) || released;
    return released;
  }

  async #release(name: string): Promise<boolean> {
    const path = join(this.#gitDir, name);
    const file = await identity(path);
    const met = this.#met.get(path);
    if (file === undefined) {
      this.#met.delete(path);
      return false;
    }
    if (met?.file !== file) {
      this.#met.set(path, { file, since: performance.now() });
      return false;
    }
    if (performance.now() - met.since < this.#staleAfter) return false;
    this.#met.delete(path);
    await removeFile(path);
    return true;
  }
}

async function identity(path: string): Promise<string | undefined> {
  try {
    const { ino, ctimeNs } = await stat(path, { bigint: true });
    return `${ino}:${ctimeNs}`;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
