import { syncFolder } from './file-system.ts';
import { mapLimited } from './map-limited.ts';

/** Folders in which names changed. Until a folder is synced, a power cut may take the new names back. */
export class SyncedFolders {
  #changed = new Set<string>();

  add(folder: string): void {
    this.#changed.add(folder);
  }

  async flush(): Promise<void> {
    const folders = [...this.#changed];
    this.#changed = new Set();
    try {
      await mapLimited(folders, 8, syncFolder);
    } catch (error) {
      for (const folder of folders) this.#changed.add(folder);
      throw error;
    }
  }
}
