import { createPacer } from '../../../foundation/concurrency/in-slices.ts';
import { type ComparedFile, type ComparedFiles, PLAIN_MODE } from './compared-files.ts';
import { unifiedDiff } from './unified-diff.ts';

/** The change of a file between two versions of a package. */
export interface FileChange {
  readonly path: string;
  readonly change: 'Added' | 'Removed' | 'Modified';
  /** True for a file that is known not to be text: one that is too large to be compared is not read. */
  readonly binary?: true;
  /** True if the patch is omitted because it is too large. */
  readonly truncated?: true;
  /** Patch in the format of `git apply`; empty if it is omitted. */
  readonly patch: string;
}

/** The files in which two versions of a package differ, as far as they fit into an answer. */
export interface FileChanges {
  readonly files: FileChange[];
  /** True if the patch of a file, or a file, is omitted. */
  readonly truncated?: true;
  /** Number of differing files that are not in `files`. */
  readonly omittedFiles?: number;
}

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
/** Bytes of files that are in memory at a time, unless one file and its former version are larger; twice `MAX_COMPARED_FILE_BYTES`. */
const MAX_READ_BYTES = 2 * 1024 * 1024;
/** Files that are read at a time. */
const MAX_READ_FILES = 100;

/** Bytes that an answer may have, as JSON. */
export interface ChangeBudget {
  readonly patchBytes: number;
  /** Of the list of files without the patches. */
  readonly listBytes: number;
}

/**
 * The files in which two versions of a package differ, sorted by path. The answer is bounded by the constants above, and so is what is
 * in memory: only files that differ are read, a few at a time. Lets others have their turn while differences are searched.
 */
export async function fileChanges(
  before: ComparedFiles,
  after: ComparedFiles,
  signal?: AbortSignal,
  budget: ChangeBudget = { patchBytes: MAX_PATCHES_BYTES, listBytes: MAX_CHANGED_FILES_BYTES },
): Promise<FileChanges> {
  const pause = createPacer();
  const pairs = changedPairs(before, after);
  const files: FileChange[] = [];
  let isTruncated = false;
  let patchBytesLeft = budget.patchBytes;
  let listBytesLeft = budget.listBytes;
  for (let at = 0; at < pairs.length; ) {
    signal?.throwIfAborted();
    // After the first patch that the answer has no room for, no more are searched.
    const isRead = patchBytesLeft > 0;
    const batch = nextBatch(pairs, at);
    at += batch.length;
    const [olds, nexts] = isRead ? await Promise.all([read(before, batch, 'old'), read(after, batch, 'next')]) : [];
    for (const pair of batch) {
      signal?.throwIfAborted();
      const [old, next] = [pair.old && olds?.get(pair.old.id), pair.next && nexts?.get(pair.next.id)];
      const omitted = withoutPatch(pair, old, next);
      listBytesLeft -= jsonBytes(omitted) + 1;
      if (listBytesLeft < 0) return { files, truncated: true, omittedFiles: pairs.length - files.length };
      const isComparable = patchBytesLeft > 0 && isRead && isSmallPair(pair) && areComparable(old, next);
      const patch = isComparable ? await fileDiff(pair, old, next) : undefined;
      const patchBytes = patch === undefined ? 0 : jsonBytes(patch);
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
  }
  return { files, ...(isTruncated ? { truncated: true } : {}) };
}

/** A path at which two versions of a package differ. */
interface ChangedPair {
  readonly path: string;
  readonly old: ComparedFile | undefined;
  readonly next: ComparedFile | undefined;
}

/** Sorted by path. */
function changedPairs(before: ComparedFiles, after: ComparedFiles): ChangedPair[] {
  const paths = [...new Set([...before.files.keys(), ...after.files.keys()])].sort();
  return paths
    .map((path) => ({ path, old: before.files.get(path), next: after.files.get(path) }))
    .filter(({ old, next }) => old?.id !== next?.id || old?.mode !== next?.mode);
}

/** What is read together from a position on; at least one. */
function nextBatch(pairs: readonly ChangedPair[], from: number): readonly ChangedPair[] {
  let bytes = 0;
  let end = from;
  for (; end < pairs.length && end - from < MAX_READ_FILES; end += 1) {
    const pair = pairs[end];
    if (pair !== undefined && isSmallPair(pair)) bytes += bytesOf(pair);
    if (end > from && bytes > MAX_READ_BYTES) break;
  }
  return pairs.slice(from, end);
}

/** The contents of one side, by id, without those of files that are too large. */
async function read(
  files: ComparedFiles,
  batch: readonly ChangedPair[],
  side: 'old' | 'next',
): Promise<ReadonlyMap<string, Buffer>> {
  const ids = [...new Set(batch.flatMap((pair) => (isSmallPair(pair) ? (pair[side]?.id ?? []) : [])))];
  const contents = ids.length === 0 ? [] : await files.read(ids);
  return new Map(contents.flatMap((data, at) => (ids[at] === undefined ? [] : [[ids[at], data]])));
}

function isSmallPair({ old, next }: ChangedPair): boolean {
  return Math.max(old?.bytes ?? 0, next?.bytes ?? 0) <= MAX_COMPARED_FILE_BYTES;
}

function bytesOf({ old, next }: ChangedPair): number {
  return (old?.bytes ?? 0) + (next?.bytes ?? 0);
}

function withoutPatch({ path, old, next }: ChangedPair, before?: Buffer, after?: Buffer): FileChange {
  const change = old === undefined ? 'Added' : next === undefined ? 'Removed' : 'Modified';
  return { path, change, ...(isBinary(before, after) ? { binary: true } : {}), truncated: true, patch: '' };
}

function isBinary(before: Buffer | undefined, after: Buffer | undefined): boolean {
  return before?.includes(0) === true || after?.includes(0) === true;
}

/** True if the files have so few lines that their difference can be searched; the patch of files that are not text is one line. */
function areComparable(before: Buffer | undefined, after: Buffer | undefined): boolean {
  return isBinary(before, after) || (hasFewLines(before) && hasFewLines(after));
}

function hasFewLines(file: Buffer | undefined): boolean {
  if (file === undefined) return true;
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

async function fileDiff(pair: ChangedPair, before: Buffer | undefined, after: Buffer | undefined): Promise<string> {
  const { path, old, next } = pair;
  const [oldMode, newMode] = [old?.mode ?? PLAIN_MODE, next?.mode ?? PLAIN_MODE];
  const isOtherType = old !== undefined && next !== undefined && typeOf(oldMode) !== typeOf(newMode);
  // As Git writes it: a symbolic link, for example, is removed before the file is added.
  if (isOtherType) {
    const removed = await fileDiff({ path, old, next: undefined }, before, undefined);
    return removed + (await fileDiff({ path, old: undefined, next }, undefined, after));
  }
  const [left, right] = [quoted(`a/${path}`), quoted(`b/${path}`)];
  const lines = [`diff --git ${left} ${right}`];
  if (before === undefined) lines.push(`new file mode ${newMode}`);
  else if (after === undefined) lines.push(`deleted file mode ${oldMode}`);
  else if (oldMode !== newMode) lines.push(`old mode ${oldMode}`, `new mode ${newMode}`);
  const header = `${lines.join('\n')}\n`;
  if (old?.id === next?.id) return header;
  if (isBinary(before, after)) return `${header}Binary files ${left} and ${right} differ\n`;
  const [oldText, newText] = [before?.toString('utf8') ?? '', after?.toString('utf8') ?? ''];
  if (oldText === newText) return header;
  const names = { before: before === undefined ? undefined : left, after: after === undefined ? undefined : right };
  return `${header}${await unifiedDiff(oldText, newText, names)}`;
}

/** The digits of a mode that say whether it is a file or a symbolic link. */
function typeOf(mode: string): string {
  return mode.slice(0, 3);
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
