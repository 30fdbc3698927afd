import { withMergeKey } from './merge-key-comment.ts';
import { isKptfilePath, type PackageFile, type PackageFiles } from './package-files.ts';
import { readResourceFile } from './resource-file.ts';

/** Bytes of YAML that are looked through; resources behind that have no marks, and are matched by their names. */
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * The files with every resource marked by a comment as the one that it is upstream, as kpt does: an upgrade finds it again after its
 * name or namespace changed. All other bytes stay.
 */
export function markResources(files: PackageFiles): PackageFiles {
  let bytes = 0;
  const marked = ([path, file]: readonly [string, PackageFile]): [string, PackageFile] => {
    if (!/\.ya?ml$/.test(path) || isKptfilePath(path) || !isUnmarked(file.data)) return [path, file];
    bytes += file.data.byteLength;
    const parts = bytes > MAX_BYTES ? undefined : readResourceFile(file.data);
    if (parts === undefined) return [path, file];
    const text = parts.map((part) =>
      part.resource === undefined ? part.text : withMergeKey(part.text, part.resource),
    );
    return [path, { ...file, data: Buffer.from(text.join('')) }];
  };
  return new Map([...files].map(marked));
}

/** True if some line `metadata:` has no comment behind it. */
function isUnmarked(data: Buffer): boolean {
  return /^metadata:[ \t]*\r?$/m.test(data.toString('latin1'));
}
