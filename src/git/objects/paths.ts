import { SluiceError } from '../../foundation/sluice-error.ts';

const MAX_SEGMENT_BYTES = 255;
const MAX_PATH_BYTES = 4096;

/** No segment like these is refused; most are like these, and long paths have thousands. */
const PLAIN_SEGMENT = /^[A-Za-z0-9_-]{1,255}$/;

/** Code points that HFS+ ignores when it compares names, so that `.g<U+200C>it` opens `.git` there. */
const HFS_IGNORED = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/gu;

/**
 * Checks a repository-relative path for writing and returns its segments. Throws InvalidInput for paths that could leave a folder
 * or replace `.git` on any file system on which a user may check the repository out.
 */
export function checkPath(path: string): string[] {
  const problem = pathProblem(path);
  if (problem !== undefined) throw refused(path, problem);
  return path.split('/');
}

/**
 * Checks the path part of a reading specification. Names from hostile trees may be read, except those that Git's line protocol
 * cannot carry or that it takes as relative to a work tree.
 */
export function checkReadPath(path: string): void {
  if (!isLinePath(path)) throw refused(path, 'it contains a line break or a NUL character: read it by object id');
  if (path !== '' && path.split('/').some((segment) => segment === '' || segment === '.' || segment === '..'))
    throw refused(path, 'it has an empty, "." or ".." segment');
}

/** False for a path, or a part of one, that Git's line protocol cannot carry: objects there are read by id alone. */
export function isLinePath(path: string): boolean {
  return !/[\n\0]/.test(path);
}

function pathProblem(path: string): string | undefined {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `it is longer than ${MAX_PATH_BYTES} bytes`;
  for (const segment of path.split('/')) {
    const problem = segmentProblem(segment);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function segmentProblem(segment: string): string | undefined {
  if (PLAIN_SEGMENT.test(segment)) return undefined;
  if (segment === '') return 'it is empty, or has an empty segment';
  if (segment === '.' || segment === '..') return 'it has a "." or ".." segment';
  if (/[\\\0\n\r]/.test(segment)) return 'it contains a backslash, a line break or a NUL character';
  if (!segment.isWellFormed()) return 'it is not valid Unicode';
  if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES) return `a segment is longer than ${MAX_SEGMENT_BYTES} bytes`;
  if (isDotGit(segment)) return `${JSON.stringify(segment)} means Git's own folder on some file systems`;
  return undefined;
}

/** `.git` as Windows (case, trailing dots and spaces, streams, short name) and macOS (case, ignored code points) see it. */
function isDotGit(segment: string): boolean {
  const windows = segment
    .replace(/:.*$/su, '')
    .replace(/[. ]+$/u, '')
    .toLowerCase();
  const mac = segment.normalize('NFC').replace(HFS_IGNORED, '').toLowerCase();
  return windows === '.git' || windows === 'git~1' || mac === '.git';
}

function refused(path: string, why: string): SluiceError {
  return new SluiceError('InvalidInput', `path ${JSON.stringify(path.slice(0, 200))} is refused: ${why}`);
}
