import type { PackageFile } from './package-files.ts';
import { type ResourceText, readResourceFile } from './resource-file.ts';

/** Bytes that one merge reads field by field: parsing and printing blocks the event loop for a second per MiB. */
const MAX_BYTES = 6 * 1024 * 1024;
const MAX_RESOURCES = 5_000;

/** Reads files once for one merge, up to a limit; files beyond it count as texts. */
export class ResourceReader {
  readonly #read = new Map<PackageFile, ResourceText[] | undefined>();
  #bytes = 0;
  #resources = 0;

  /** The resources of a file; undefined if it is just a text. */
  resources(file: PackageFile): readonly ResourceText[] | undefined {
    if (this.#read.has(file)) return this.#read.get(file);
    const fits = this.#bytes + file.data.byteLength <= MAX_BYTES && this.#resources < MAX_RESOURCES;
    const resources = fits ? readResourceFile(file.data, MAX_RESOURCES - this.#resources) : undefined;
    if (fits) this.#bytes += file.data.byteLength;
    this.#resources += resources?.length ?? 0;
    this.#read.set(file, resources);
    return resources;
  }

  /** The resources of a file that was read already. */
  known(file: PackageFile): readonly ResourceText[] | undefined {
    return this.#read.get(file);
  }

  /** True if the file contains resources on every side that has it. */
  hasResources(path: string, sides: readonly (PackageFile | undefined)[]): boolean {
    if (!/\.ya?ml$/.test(path)) return false;
    return sides.every(
      (file) => file === undefined || this.resources(file)?.some(({ resource }) => resource !== undefined),
    );
  }
}
