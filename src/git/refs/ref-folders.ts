import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { mapLimited } from '../../foundation/concurrency/map-limited.ts';
import { isMissing, syncFolder } from '../../foundation/files/file-system.ts';
import type { RefUpdate } from '../git-repository.ts';

const MAX_PARALLEL_SYNCS = 8;
/** Maximum number of folders that are known to be durable. For all others, each parent folder is synced every time. */
const MAX_KNOWN_FOLDERS = 20_000;

/**
 * Makes the names of changed ref files durable: Git syncs what is in the files, not the folders that they are renamed in. Beside the
 * folder of a ref, those above it matter only where a folder is new or removed, which follows from what this process has synced before.
 */
export class RefFolders {
  readonly #gitDir: string;
  readonly #sync: (folder: string) => Promise<void>;
  /** The folders whose own name is known to be durable, with what distinguishes each from a later one of the same name. */
  readonly #durable = new Map<string, string>();

  constructor(gitDir: string, sync = syncFolder) {
    this.#gitDir = gitDir;
    this.#sync = sync;
  }

  /** Call after the updates were made. When it returns, a power cut reverts none of them. */
  async sync(updates: readonly RefUpdate[]): Promise<void> {
    const changed = new Set<string>();
    const unknown = new Map<string, string>();
    for (const update of updates) {
      if (update.type === 'verify') continue;
      // A deletion may have replaced packed-refs.
      if (update.type === 'delete') changed.add('.');
      for (let folder = dirname(update.ref); folder !== '.'; folder = dirname(folder)) {
        changed.add(folder);
        const identity = this.#identity(folder);
        if (identity !== undefined && this.#durable.get(folder) === identity) break;
        this.#durable.delete(folder);
        if (identity !== undefined) unknown.set(folder, identity);
      }
    }
    await mapLimited([...changed], MAX_PARALLEL_SYNCS, (folder) => this.#sync(join(this.#gitDir, folder)));
    for (const [folder, identity] of unknown)
      if (this.#durable.size < MAX_KNOWN_FOLDERS) this.#durable.set(folder, identity);
  }

  /** Undefined if there is no such folder (Git removes it with the last ref in it), or if the file system has no times of creation. */
  #identity(folder: string): string | undefined {
    try {
      const { dev, ino, birthtimeNs } = statSync(join(this.#gitDir, folder), { bigint: true });
      // The inode of a removed folder is soon used again.
      return birthtimeNs === 0n ? undefined : `${dev}:${ino}:${birthtimeNs}`;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }
}
