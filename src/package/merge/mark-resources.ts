import { withMergeKey } from './merge-key-comment.ts';
import { isKptfilePath, type PackageFile, type PackageFiles } from './package-files.ts';
import { type ResourceText, readResourceFile } from './resource-file.ts';
import { withUpstreamIdentifier } from './upstream-identifier.ts';

/** Number of bytes of YAML that are searched; later resources have no marks, and are matched by their names. */
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * The files with every resource marked by a comment and an annotation as the one that it is upstream, as kpt does: an upgrade finds it
 * again after its name or namespace changed, and functions see what it was. Kptfiles get the annotation only. All other bytes stay.
 */
export function markResources(files: PackageFiles): PackageFiles {
  let bytes = 0;
  const marked = ([path, file]: readonly [string, PackageFile]): [string, PackageFile] => {
    if (!/\.ya?ml$/.test(path) && !isKptfilePath(path)) return [path, file];
    bytes += file.data.byteLength;
    const parts = bytes > MAX_BYTES ? undefined : readResourceFile(file.data);
    if (parts === undefined) return [path, file];
    const text = parts.map((part) => markedText(part, isKptfilePath(path))).join('');
    return [path, { ...file, data: Buffer.from(text) }];
  };
  return new Map([...files].map(marked));
}

function markedText({ text, resource }: ResourceText, isKptfile: boolean): string {
  if (resource === undefined) return text;
  return withUpstreamIdentifier(isKptfile ? text : withMergeKey(text, resource), resource);
}
