import { createPacer } from '../../../foundation/concurrency/in-slices.ts';
import { unifiedDiff } from './unified-diff.ts';

/** What became of a file between two versions of a package. */
export interface FileChange {
  readonly path: string;
  readonly change: 'Added' | 'Removed' | 'Modified';
  /** True for a file that is not text. */
  readonly binary?: true;
  /** True if the patch is left out because it is too large. */
  readonly truncated?: true;
  /** In the form that `git apply` reads; empty if it is left out. */
  readonly patch: string;
}

/** The files in which two versions of a package differ, as far as they fit into an answer. */
export interface FileChanges {
  readonly files: FileChange[];
  /** True if the patch of a file or a file is left out. */
  readonly truncated?: true;
  /** How many files that differ are not in `files`. */
  readonly omittedFiles?: number;
}

type Files = ReadonlyMap<string, Buffer>;

const LINE_FEED = 0x0a;

/** Bytes of a file on either side up to which its lines are compared. */
export const MAX_COMPARED_FILE_BYTES = 1024 * 1024;
/** The same in lines. The time of a comparison depends on these more than on the bytes. */
export const MAX_COMPARED_FILE_LINES = 50_000;
/** Bytes of the patch of one file, as JSON: a control character has six. */
export const MAX_FILE_PATCH_BYTES = 1024 * 1024;
/** Bytes of all patches of an answer, as JSON. */
export const MAX_PATCHES_BYTES = 3 * 1024 * 1024;
/** Bytes of the list of files of an answer without the patches, as JSON. */
export const MAX_CHANGED_FILES_BYTES = 1024 * 1024;

/**
 * The files in which two versions of a package differ, sorted by path. The answer is bounded by the constants above. Lets others have
 * their turn while differences are searched.
 */
export async function fileChanges(before: Files, after: Files, signal?: AbortSignal): Promise<FileChanges> {
  const pause = createPacer();
  const paths = changedPaths(before, after);
  const files: FileChange[] = [];
  let isTruncated = false;
  let patchBytesLeft = MAX_PATCHES_BYTES;
  let listBytesLeft = MAX_CHANGED_FILES_BYTES;
  for (const path of paths) {
    signal?.throwIfAborted();
    const [old, next] = [before.get(path), after.get(path)];
    const omitted = withoutPatch(path, old, next);
    listBytesLeft -= jsonBytes(omitted) + 1;
    if (listBytesLeft < 0) return { files, truncated: true, omittedFiles: paths.length - files.length };
    const patch = patchBytesLeft > 0 && isComparable(old, next) ? await fileDiff(path, old, next) : undefined;
    const patchBytes = patch === undefined ? 0 : jsonBytes(patch);
    // After the first patch that the answer has no room for, no more are searched.
    if (patchBytes <= MAX_FILE_PATCH_BYTES) patchBytesLeft -= patchBytes;
    if (patch === undefined || patchBytes > MAX_FILE_PATCH_BYTES || patchBytesLeft < 0) {
      isTruncated = true;
      files.push(omitted);
    } else {
      const { truncated: _truncated, ...whole } = omitted;
      files.push({ ...whole, patch });
    }
    await pause();
  }
  return { files, ...(isTruncated ? { truncated: true } : {}) };
}

/** The paths at which two versions of a package differ, sorted. */
function changedPaths(before: Files, after: Files): string[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths.filter((path) => !same(before.get(path), after.get(path)));
}

function withoutPatch(path: string, before: Buffer | undefined, after: Buffer | undefined): FileChange {
  const change = before === undefined ? 'Added' : after === undefined ? 'Removed' : 'Modified';
  return { path, change, ...(isBinary(before, after) ? { binary: true } : {}), truncated: true, patch: '' };
}

function isBinary(before: Buffer | undefined, after: Buffer | undefined): boolean {
  return before?.includes(0) === true || after?.includes(0) === true;
}

/** True if the files are small enough to search their difference; the patch of files that are not text is one line. */
function isComparable(before: Buffer | undefined, after: Buffer | undefined): boolean {
  return isBinary(before, after) || (isSmall(before) && isSmall(after));
}

function isSmall(file: Buffer | undefined): boolean {
  if (file === undefined) return true;
  if (file.length > MAX_COMPARED_FILE_BYTES) return false;
  let lines = 0;
  for (
    let at = file.indexOf(LINE_FEED);
    at !== -1 && lines <= MAX_COMPARED_FILE_LINES;
    at = file.indexOf(LINE_FEED, at + 1)
  )
    lines++;
  return lines <= MAX_COMPARED_FILE_LINES;
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function same(before: Buffer | undefined, after: Buffer | undefined): boolean {
  return before === undefined || after === undefined ? before === after : before.equals(after);
}

async function fileDiff(path: string, before: Buffer | undefined, after: Buffer | undefined): Promise<string> {
  const [left, right] = [quoted(`a/${path}`), quoted(`b/${path}`)];
  const lines = [`diff --git ${left} ${right}`];
  if (before === undefined) lines.push('new file mode 100644');
  if (after === undefined) lines.push('deleted file mode 100644');
  const header = `${lines.join('\n')}\n`;
  if (isBinary(before, after)) return `${header}Binary files ${left} and ${right} differ\n`;
  const [old, next] = [before?.toString('utf8') ?? '', after?.toString('utf8') ?? ''];
  if (old === next) return header;
  const names = { before: before === undefined ? undefined : left, after: after === undefined ? undefined : right };
  return `${header}${await unifiedDiff(old, next, names)}`;
}

/** A path as Git writes it in a patch: in quotes and with octal bytes if it has characters that could mislead. */
function quoted(path: string): string {
  if (/^[\x21\x23-\x5b\x5d-\x7e ]+$/.test(path)) return path;
  const bytes = [...Buffer.from(path)].map((byte) =>
    byte > 0x1f && byte < 0x7f && byte !== 0x22 && byte !== 0x5c
      ? String.fromCharCode(byte)
      : `\\${byte.toString(8).padStart(3, '0')}`,
  );
  return `"${bytes.join('')}"`;
}
