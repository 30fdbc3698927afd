import { SluiceError } from '../../foundation/sluice-error.ts';
import type { PackageFile } from './package-files.ts';
import { type ResourceText, readResourceFile } from './resource-file.ts';

/** Bytes of YAML that one merge looks through. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Reads files once for one merge, up to a bound. */
export class ResourceReader {
  readonly #read = new Map<PackageFile, ResourceText[] | undefined>();
  #bytes = 0;

  /** The resources of a file; undefined if it is just a text. Throws LimitExceeded. */
  resources(file: PackageFile): readonly ResourceText[] | undefined {
    if (this.#read.has(file)) return this.#read.get(file);
    this.#bytes += file.data.byteLength;
    if (this.#bytes > MAX_BYTES) {
      throw new SluiceError(
        'LimitExceeded',
        `more than ${MAX_BYTES} bytes of YAML differ between the revisions; upgrade with the strategy copy-merge or force-delete-replace`,
      );
    }
    const resources = readResourceFile(file.data);
    this.#read.set(file, resources);
    return resources;
  }

  /** The resources of a file that was read already. */
  known(file: PackageFile): readonly ResourceText[] | undefined {
    return this.#read.get(file);
  }

  /** True if the file holds resources on every side that has it. */
  holdsResources(path: string, sides: readonly (PackageFile | undefined)[]): boolean {
    if (!/\.ya?ml$/.test(path)) return false;
    return sides.every(
      (file) => file === undefined || this.resources(file)?.some(({ resource }) => resource !== undefined),
    );
  }
}
