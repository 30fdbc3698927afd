import { SluiceError } from '../../../foundation/sluice-error.ts';

/** Limits for one package; real packages are far below them. */
export const MAX_FILES = 10_000;
export const MAX_BYTES = 64 * 1024 * 1024;
/** Files and folders together: a tree with more is not read, since equal folders, nested, multiply without taking any space. */
const MAX_ENTRIES = 2 * MAX_FILES;
/** Folders above a file. Each is a tree of Git that a change of the file writes again. */
const MAX_FOLDER_DEPTH = 100;

/** Returns why a new file cannot be at a path that is deep; undefined if it can. */
export function depthProblem(path: string): string | undefined {
  let folders = 0;
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) folders += 1;
  return folders > MAX_FOLDER_DEPTH ? `it has ${folders} folders; a path has at most ${MAX_FOLDER_DEPTH}` : undefined;
}

/**
 * Throws LimitExceeded for the files of a package that could not be read again once it is written. `others` are the paths of entries that
 * are no regular files.
 */
export function checkPackageSize(
  name: string,
  files: ReadonlyMap<string, string | Uint8Array>,
  others: readonly string[] = [],
): void {
  let bytes = 0;
  for (const data of files.values()) bytes += typeof data === 'string' ? Buffer.byteLength(data) : data.byteLength;
  const paths = new Set([...files.keys(), ...others]);
  if (bytes > MAX_BYTES || paths.size > MAX_FILES)
    throw new SluiceError(
      'LimitExceeded',
      `${name} would have ${paths.size} files with ${bytes} bytes; a package has at most ${MAX_FILES} files and ${MAX_BYTES} bytes`,
    );
  const folders = new Set<string>();
  for (const path of paths) {
    // Folders above one that is counted are counted, too.
    for (let at = path.lastIndexOf('/'); at !== -1; at = path.lastIndexOf('/', at - 1)) {
      const folder = path.slice(0, at);
      if (folders.has(folder)) break;
      folders.add(folder);
      if (paths.size + folders.size > MAX_ENTRIES)
        throw new SluiceError(
          'LimitExceeded',
          `${name} would have ${paths.size} files in more than ${MAX_ENTRIES - paths.size} folders; a package has at most ${MAX_ENTRIES} files and folders together. Put the files into fewer folders`,
        );
    }
  }
}
