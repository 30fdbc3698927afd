import { SluiceError } from '../foundation/sluice-error.ts';
import { trimEndsOf } from '../foundation/text/trim-characters.ts';

/**
 * Returns why a relative path must not be written into a Git tree that users check out; undefined if it may be. Rejects
 * empty, `.` and `..` segments, absolute paths, backslashes, control characters, and every spelling that some file system
 * reads as `.git`.
 */
export function pathProblem(path: string): string | undefined {
  if (path === '') return 'is empty';
  if (path.startsWith('/')) return 'is absolute';
  if (path.length > 4096) return 'is longer than 4096 characters';
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(path)) return 'contains a control character or a line break';
  if (/\p{Surrogate}|\ufffd/u.test(path)) return 'is not valid UTF-8';
  if (path.includes('\\')) return 'contains a backslash';
  for (const segment of path.split('/')) {
    if (segment === '' || segment === '.' || segment === '..') return 'contains an empty, "." or ".." segment';
    if (isDotGit(segment)) return 'contains a segment that may be read as .git';
  }
  return undefined;
}

function isDotGit(segment: string): boolean {
  // HFS+ ignores some characters, NTFS trailing dots, spaces and what follows a colon; both ignore case.
  const plain = segment.replace(/[\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, '').split(':')[0] ?? '';
  return /^(?:\.git|git~\d+)[. ]*$/i.test(plain);
}

/** The directory of a target without slashes at its ends; the root of the repository is empty. Throws InvalidInput. */
export function normalizeDirectory(directory: string): string {
  const inner = trimEndsOf(directory, '/');
  const problem = inner === '' ? undefined : pathProblem(inner);
  if (problem !== undefined)
    throw new SluiceError('InvalidInput', `spec.git.directory ${JSON.stringify(directory)} ${problem}`);
  return inner;
}

export function joinPath(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('/');
}

/** True if a folder equals another one or is inside it. */
export function isInside(folder: string, other: string): boolean {
  return folder === other || folder.startsWith(`${other}/`);
}

/** Compares by code unit, which is the same on every machine. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
