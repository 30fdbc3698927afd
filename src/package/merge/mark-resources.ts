import { createHash } from 'node:crypto';
import { LruCache } from '../../foundation/lru-cache.ts';
import { withMergeKey } from './merge-key-comment.ts';
import { isKptfilePath, type PackageFile, type PackageFiles } from './package-files.ts';
import { type ResourceText, readResourceFile } from './resource-file.ts';
import { withUpstreamIdentifier } from './upstream-identifier.ts';

/** Number of bytes of YAML that are searched; later resources have no marks, and are matched by their names. */
const MAX_BYTES = 4 * 1024 * 1024;
/** The files of one upstream package are the same in many packages. */
const cache = new LruCache<string, Buffer>({ maxEntries: 4096, maxSize: 8 * 1024 * 1024 });

/**
 * The files with every resource marked by a comment and an annotation as the one that it is upstream, as kpt does: an upgrade finds it
 * again after its name or namespace changed, and functions see what it was. Kptfiles get the annotation only. All other bytes stay.
 */
export function markResources(files: PackageFiles): PackageFiles {
  let bytes = 0;
  const marked = ([path, file]: readonly [string, PackageFile]): [string, PackageFile] => {
    if (!/\.ya?ml$/.test(path) && !isKptfilePath(path)) return [path, file];
    bytes += file.data.byteLength;
    return bytes > MAX_BYTES ? [path, file] : [path, { ...file, data: markedFile(file.data, isKptfilePath(path)) }];
  };
  return new Map([...files].map(marked));
}

function markedFile(data: Buffer, isKptfile: boolean): Buffer {
  const key = `${createHash('sha256').update(data).digest('base64')}${isKptfile ? 'Kptfile' : ''}`;
  const known = cache.get(key);
  if (known !== undefined) return known;
  const parts = readResourceFile(data);
  const marked = parts === undefined ? data : Buffer.from(parts.map((part) => markedText(part, isKptfile)).join(''));
  // The file of the caller where nothing changes: what is kept must not change with it.
  cache.set(key, marked.equals(data) ? Buffer.from(data) : marked, data.byteLength);
  return marked;
}

function markedText({ text, resource }: ResourceText, isKptfile: boolean): string {
  if (resource === undefined) return text;
  return withUpstreamIdentifier(isKptfile ? text : withMergeKey(text, resource), resource);
}
