import { syncFolder } from './file-system.ts';

/** Folders in which names changed. Until a folder is synced, a power cut may take the new names back. */
export class SyncedFolders {
  #changed = new Set<string>();

  add(folder: string): void {
    this.#changed.add(folder);
  }

  async flush(): Promise<void> {
    const folders = [...this.#changed];
    this.#changed = new Set();
    const results = await Promise.allSettled(folders.map(syncFolder));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined) return;
    for (const folder of folders) this.#changed.add(folder);
    throw failed.reason;
  }
}
