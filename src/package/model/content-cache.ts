import type { PackageContent } from './content.ts';
import { isYamlPath } from './krm/krm.ts';

/** Bounds for one repository: packages that are worked on are judged again and again, and most are small. */
const MAX_ENTRIES = 256;
const MAX_BYTES = 32 * 1024 * 1024;
/** YAML counts so many times: its objects are kept too, which take up to thirty times the memory of the text. */
const YAML_WEIGHT = 4;

/** Contents that were read last, within a number and a size. */
export class ContentCache {
  readonly #entries = new Map<string, { readonly content: Promise<PackageContent>; bytes: number }>();
  #bytes = 0;

  /** The content under a key, read once for all concurrent callers; what cannot be read is not kept. */
  get(key: string, read: () => Promise<PackageContent>): Promise<PackageContent> {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      // Last used, last to go.
      this.#entries.delete(key);
      this.#entries.set(key, known);
      return known.content;
    }
    const entry = { content: read(), bytes: 0 };
    this.#entries.set(key, entry);
    entry.content.then(
      (content) => {
        if (this.#entries.get(key) !== entry) return;
        entry.bytes = sizeOf(content);
        this.#bytes += entry.bytes;
        this.#trim();
      },
      () => {
        // The caller gets the error; the next one tries again.
        if (this.#entries.get(key) === entry) this.#entries.delete(key);
      },
    );
    return entry.content;
  }

  /** Number and bytes of what is kept. */
  get size(): { readonly entries: number; readonly bytes: number } {
    return { entries: this.#entries.size, bytes: this.#bytes };
  }

  #trim(): void {
    for (const [key, { bytes }] of this.#entries) {
      if (this.#entries.size <= MAX_ENTRIES && this.#bytes <= MAX_BYTES) break;
      this.#entries.delete(key);
      this.#bytes -= bytes;
    }
  }
}

function sizeOf(content: PackageContent): number {
  let bytes = 0;
  for (const [path, { length }] of content.files) bytes += isYamlPath(path) ? YAML_WEIGHT * length : length;
  return bytes;
}
