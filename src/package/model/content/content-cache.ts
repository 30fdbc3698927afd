import { LruCache } from '../../../foundation/lru-cache.ts';
import { isYamlPath } from '../krm/krm.ts';
import type { PackageContent } from './content.ts';
import { unreadableReason } from './unreadable-content.ts';

/** Limits for one repository: packages in work are evaluated repeatedly, and most are small. */
const MAX_ENTRIES = 256;
const MAX_BYTES = 32 * 1024 * 1024;
/** YAML counts so many times: its objects are kept too, which take up to thirty times the memory of the text. */
const YAML_WEIGHT = 4;

/** Contents that were read last, within a number and a size. */
export class ContentCache {
  readonly #contents = new LruCache<string, Promise<PackageContent>>({ maxEntries: MAX_ENTRIES, maxSize: MAX_BYTES });

  /**
   * The content under a key, read once for all callers at the same time. That a push brought what cannot be read is kept too: to find it out can
   * take as long as reading the largest package. After another failure the next caller reads again.
   */
  get(key: string, read: () => Promise<PackageContent>): Promise<PackageContent> {
    const known = this.#contents.get(key);
    if (known !== undefined) return known;
    const reading = read();
    this.#contents.set(key, reading);
    reading.then(
      (content) => {
        // Its size is known only now.
        if (this.#contents.peek(key) === reading) this.#contents.set(key, reading, sizeOf(content));
      },
      (error) => {
        if (unreadableReason(error) === undefined && this.#contents.peek(key) === reading) this.#contents.delete(key);
      },
    );
    return reading;
  }

  /** Number and bytes of the entries. */
  get size(): { readonly entries: number; readonly bytes: number } {
    return { entries: this.#contents.count, bytes: this.#contents.size };
  }
}

function sizeOf(content: PackageContent): number {
  let bytes = 0;
  for (const [path, { length }] of content.files) bytes += isYamlPath(path) ? YAML_WEIGHT * length : length;
  return bytes;
}
